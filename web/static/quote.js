// Open WebUI appends a text directive to the link of a quote, as if the link had no fragment.
// The directive leads nowhere, or to an earlier place with the same words, so it is removed.

if (location.hash.startsWith("#quote#")) location.replace("#quote");
