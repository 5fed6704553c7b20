// The page's script in a document of a few lines: enough to see what it draws at a width and in a theme, no browser.
// node page.js frontier.html WIDTH THEME
"use strict";
const fs = require("fs");
const [path, width, theme] = process.argv.slice(2);
const html = fs.readFileSync(path, "utf8");
const data = html.match(/id="data">([\s\S]*?)<\/script>/)[1];
const script = html.match(/<script>\n([\s\S]*?)\n<\/script>/)[1];

class Node {
  constructor(tag) { this.tag = tag; this.attributes = {}; this.children = []; this.dataset = {}; this.style = {}; this.text = ""; this.parentNode = null; this.offsetWidth = 200; this.offsetHeight = 100; }
  get clientWidth() { return Number(width); }
  get clientHeight() { return Number(width); }
  set textContent(text) { this.text = String(text); this.children = []; }
  get textContent() { return this.text + this.children.map(c => typeof c === "string" ? c : c.textContent).join(""); }
  setAttribute(key, value) { this.attributes[key] = String(value); }
  getAttribute(key) { return this.attributes[key]; }
  append(...nodes) { nodes.forEach(n => { if (n instanceof Node) n.parentNode = this; if (n !== "") this.children.push(n); }); }
  replaceChildren(...nodes) { this.children = []; this.append(...nodes); }
  addEventListener() {}
  contains() { return false; }
  querySelector() { return null; }
  focus() {}
}
const named = { data: new Node("script"), content: new Node("main"), theme: new Node("button") };
named.data.text = data;
global.document = {
  getElementById: id => named[id], createElement: tag => new Node(tag), createElementNS: (_, tag) => new Node(tag),
  documentElement: new Node("html"), activeElement: null, createRange: () => ({}),
};
global.window = { matchMedia: () => ({ matches: theme === "dark", addEventListener() {} }) };
new Function("document", "window", "navigator", script)(global.document, global.window, {});
const plain = n => typeof n === "string" ? n : { tag: n.tag, text: n.text, ...n.attributes, children: n.children.map(plain) };
console.log(JSON.stringify({ ready: global.document.documentElement.dataset.ready, page: plain(named.content) }));
