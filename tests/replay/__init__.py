"""Nothing but releases and public values reaches an observer: every fit, replayed on nasty neighbours."""
