// The link of a quote that Open WebUI has extended by a text directive, as if it had no
// fragment. The directive leads nowhere, or to an earlier place with the same words.

if (location.hash.startsWith("#quote#")) location.replace("#quote");
