// A button on each block of code copies it: without prompts, and without what they print.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight > pre")) {
    const button = document.createElement("button");
    button.className = "copy-code";
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy this code");
    button.addEventListener("click", async () => {
      const lines = block.textContent.trimEnd().split("\n");
      const prompt = /^(>>>|\.\.\.|\$)( |$)/;
      const typed = lines.filter((line) => prompt.test(line)).map((line) => line.replace(prompt, ""));
      await navigator.clipboard.writeText((typed.length ? typed : lines).join("\n") + "\n");
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.parentElement.append(button);
  }
});
