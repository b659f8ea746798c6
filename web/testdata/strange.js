(() => {
  const own = (address) => { try { return new URL(address, location.href).origin === location.origin } catch { return false } };
  const strange = [];
  for (const e of document.querySelectorAll("*")) {
    const name = e.localName;
    if (["iframe", "frame", "object", "embed", "applet", "base", "style", "video", "audio", "source", "picture", "math",
      "template", "slot", "marquee"].includes(name) || name.includes("-"))
      strange.push(name);
    if (name === "script" && !(e.id === "phrases" && e.parentElement === document.head) && !(e.src && own(e.src))) strange.push("script");
    if (name === "meta" && e.httpEquiv) strange.push("meta " + e.httpEquiv);
    if (e.closest(".turn .text, .turn .notes, .turn details, .sources, #source article, main article") &&
      ["img", "input", "script", "link", "meta", "noscript"].includes(name))
      strange.push(name + " in words");
    for (const a of e.attributes) {
      if (a.name.startsWith("on")) strange.push(name + " " + a.name);
      if (["href", "src", "action", "formaction", "srcset", "poster", "data", "background", "cite", "ping",
        "xlink:href"].includes(a.name) && !own(a.value))
        strange.push(name + " " + a.name + "=" + a.value);
      if (a.name === "style" && /url|expression|import|position/i.test(a.value)) strange.push(name + " style=" + a.value);
    }
  }
  return strange.slice(0, 5).join("; ");
})()
