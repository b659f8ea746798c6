package format

import (
	"slices"
	"strings"
	"unicode"

	"codeberg.org/readeck/go-readability"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// unseen elements contain no visible text.
var unseen = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Svg: true,
	atom.Iframe: true, atom.Object: true, atom.Embed: true, atom.Canvas: true, atom.Audio: true,
	atom.Video: true, atom.Select: true, atom.Button: true, atom.Textarea: true, atom.Head: true,
	atom.Map: true, atom.Datalist: true, atom.Dialog: true, atom.Title: true, atom.Noframes: true,
	atom.Del: true, // its replacement is visible
}

// boilerplate elements are no content, by their name or role.
var boilerplate = map[atom.Atom]bool{atom.Nav: true, atom.Aside: true, atom.Footer: true, atom.Menu: true}

var boilerplateRole = map[string]bool{
	"navigation": true, "banner": true, "contentinfo": true, "search": true, "complementary": true,
	"menu": true, "menubar": true, "toolbar": true, "dialog": true, "alertdialog": true,
}

// attr returns the value of an attribute; empty if there is none.
func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// leftOut reports whether an element is no content.
func leftOut(n *html.Node) bool {
	if n.Type != html.ElementNode {
		return n.Type == html.CommentNode
	}
	if unseen[n.DataAtom] || boilerplate[n.DataAtom] || n.Data == "svg" {
		return true
	}
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "aria-hidden":
			return a.Val == "true"
		case "role":
			if boilerplateRole[a.Val] {
				return true
			}
		case "style":
			s := strings.ReplaceAll(strings.ToLower(a.Val), " ", "")
			if strings.Contains(s, "display:none") || strings.Contains(s, "visibility:hidden") ||
				strings.Contains(s, "font-size:0") || strings.Contains(s, "opacity:0;") || strings.HasSuffix(s, "opacity:0") {
				return true
			}
		}
	}
	return false
}

// prune removes the nodes without content from a tree.
func prune(n *html.Node) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if c.DataAtom != atom.Head && leftOut(c) {
			n.RemoveChild(c)
		} else {
			prune(c)
		}
		c = next
	}
}

// around are words in the classes of banners, menus and links around the content.
var around = func() map[string]bool {
	words := make(map[string]bool)
	for w := range strings.FieldsSeq(`cookie cookies consent gdpr popup modal subscribe signup login newsletter share sharing sharebar
		addthis social related recommended recirc trending outbrain taboola advertisement advert ads promo sponsored banner breadcrumb
		breadcrumbs sidebar footer masthead navbar nav navigation menu megamenu submenu mainmenu topnav toolbar skip pagination tags byline
		timestamp comments comment disqus respond`) {
		words[w] = true
	}
	return words
}()

// pruneAround removes banners, menus and such from a pruned page, by their classes.
// It keeps tables, code and all that is a quarter of the page.
func pruneAround(root *html.Node) {
	text, solid := textLengths(root, false, nil)
	textLengths(root, false, func(n *html.Node, t, s int) bool { return s == 0 && t*4 < text+solid && isAround(n) })
}

// isAround looks at no id, since those of sections name their subject.
func isAround(n *html.Node) bool {
	if n.DataAtom != atom.Div && n.DataAtom != atom.Ul && n.DataAtom != atom.Section && n.DataAtom != atom.Form && n.DataAtom != atom.P {
		return false
	}
	words := strings.FieldsFunc(strings.ToLower(attr(n, "class")), func(r rune) bool { return !unicode.IsLetter(r) })
	return slices.ContainsFunc(words, func(w string) bool { return around[w] })
}

// Limits for finding the article of a page: its nodes, and the shares of the words
// outside the article in running text, if the page marks its content, and in tables
// and code.
const (
	maxArticleNodes = 40_000
	maxLostText     = 0.5
	maxLostSolid    = 0.02
)

// mainContent returns the article of a pruned page; or the element that the page marks
// as its content if most words are in it but few in the article; or else the body.
func mainContent(root *html.Node) *html.Node {
	body := find(root, func(n *html.Node) bool { return n.DataAtom == atom.Body })
	if body == nil {
		return root
	}
	whole := body
	all := textLength(body)
	for _, want := range []func(*html.Node) bool{
		func(n *html.Node) bool { return n.DataAtom == atom.Main || attr(n, "role") == "main" },
		func(n *html.Node) bool { return n.DataAtom == atom.Article },
	} {
		if n := find(body, want); n != nil && textLength(n)*2 >= all {
			whole = n
			break
		}
	}
	if article := articleOf(root); article != nil {
		text, solid := textLengths(whole, false, nil)
		keptText, keptSolid := textLengths(article, false, nil)
		sum := float64(max(1, text+solid))
		if (whole == body || float64(text-keptText) <= maxLostText*sum) && float64(solid-keptSolid) <= maxLostSolid*sum {
			return article
		}
	}
	return whole
}

// articleOf returns the article that a browser's reader view would show; nil if
// the page has none.
func articleOf(root *html.Node) *html.Node {
	parser := readability.NewParser()
	parser.DisableJSONLD = true
	nodes := 0
	for range root.Descendants() {
		nodes++
	}
	if nodes > maxArticleNodes || !parser.CheckDocument(root) {
		return nil
	}
	// It works on a copy. After an error the whole page is read.
	article, err := parser.ParseDocument(root, nil)
	if err != nil || article.Node == nil {
		return nil
	}
	article.Node.Attr = nil // its own, of no page
	return article.Node
}

// textLengths returns the bytes of running text outside links, and of tables of data
// and code. It removes the nodes below that drop returns true for; nil removes none.
func textLengths(n *html.Node, inSolid bool, drop func(n *html.Node, text, solid int) bool) (text, solid int) {
	if n.Type == html.TextNode {
		if size := len(oneLine(n.Data)); inSolid {
			return 0, size
		} else {
			return size, 0
		}
	}
	inSolid = inSolid || n.DataAtom == atom.Pre || n.DataAtom == atom.Table && !isLayout(n)
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		t, s := 0, 0
		if c.DataAtom != atom.A || inSolid {
			t, s = textLengths(c, inSolid, drop)
		}
		if drop != nil && drop(c, t, s) {
			n.RemoveChild(c)
		} else {
			text, solid = text+t, solid+s
		}
		c = next
	}
	return text, solid
}

// find returns the first element that is wanted, n or one in it.
func find(n *html.Node, want func(*html.Node) bool) *html.Node {
	if n.Type == html.ElementNode && want(n) {
		return n
	}
	for c := range n.Descendants() {
		if c.Type == html.ElementNode && want(c) {
			return c
		}
	}
	return nil
}

func textLength(n *html.Node) int { return len(oneLine(rawText(n))) }
