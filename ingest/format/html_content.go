package format

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"codeberg.org/readeck/go-readability"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"ibid/ingest/office"
)

// unseen elements contain no visible text.
var unseen = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Template: true, atom.Svg: true,
	atom.Iframe: true, atom.Object: true, atom.Embed: true, atom.Canvas: true, atom.Audio: true,
	atom.Video: true, atom.Select: true, atom.Button: true, atom.Textarea: true, atom.Head: true,
	atom.Map: true, atom.Datalist: true, atom.Dialog: true, atom.Title: true, atom.Noframes: true,
	atom.Del: true, // its replacement is visible
}

// boilerplate elements are not content, according to their name or role.
var boilerplate = map[atom.Atom]bool{atom.Nav: true, atom.Aside: true, atom.Footer: true, atom.Menu: true}

var boilerplateRole = map[string]bool{
	"navigation": true, "banner": true, "contentinfo": true, "search": true, "complementary": true,
	"menu": true, "menubar": true, "toolbar": true, "dialog": true, "alertdialog": true,
}

// attr returns the value of an attribute, or "".
func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// isUnseen reports whether a node is never shown.
func isUnseen(n *html.Node) bool {
	return n.Type == html.CommentNode || n.Type == html.ElementNode && (unseen[n.DataAtom] || n.Data == "svg")
}

// isBoilerplate reports whether an element is not content, according to its name or role.
func isBoilerplate(n *html.Node) bool {
	return boilerplate[n.DataAtom] || boilerplateRole[attr(n, "role")]
}

// Styles that hide an element permanently, or until a script shows it.
var (
	hiddenStyle  = regexp.MustCompile(`(?i)(?:^|;)\s*(?:display\s*:\s*none|font-size\s*:\s*0(?:px|r?em|pt|%)?\s*(?:[;!]|$))`)
	waitingStyle = regexp.MustCompile(`(?i)(?:^|;)\s*(?:visibility\s*:\s*hidden|opacity\s*:\s*0(?:\.0*)?\s*(?:[;!]|$))`)
)

func isHidden(n *html.Node) bool {
	return hiddenStyle.MatchString(attr(n, "style")) || attr(n, "aria-hidden") == "true" || isWaiting(n)
}

// isWaiting reports whether an element is hidden until a script shows it.
func isWaiting(n *html.Node) bool {
	return n.DataAtom == atom.Noscript || waitingStyle.MatchString(attr(n, "style")) ||
		slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "hidden" })
}

func isNoContent(n *html.Node) bool { return isUnseen(n) || isBoilerplate(n) || isHidden(n) }

// prune removes the nodes below n for which leftOut returns true, and rewrites superscripts and
// note marks with superscript digits.
func prune(n *html.Node, leftOut func(*html.Node) bool) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		text, raised := "", false
		if c.DataAtom == atom.Sup || c.DataAtom == atom.A && (attr(c, "epub:type") == "noteref" || attr(c, "role") == "doc-noteref") {
			text, raised = office.Superscript(rawText(c))
		}
		switch {
		case raised:
			n.InsertBefore(&html.Node{Type: html.TextNode, Data: text}, c)
			n.RemoveChild(c)
		case c.DataAtom != atom.Head && leftOut(c):
			n.RemoveChild(c)
		default:
			prune(c, leftOut)
		}
		c = next
	}
}

// around are words in the classes of banners, menus and links around the content.
var around = set(`
		cookie cookies consent gdpr popup modal subscribe signup login newsletter share sharing sharebar
		addthis social related recommended recirc trending outbrain taboola advertisement advert ads promo sponsored banner breadcrumb
		breadcrumbs sidebar footer masthead navbar nav navigation menu megamenu submenu mainmenu topnav toolbar skip pagination tags byline
		timestamp comments comment disqus respond author authors bio`)

// prunePage removes hidden elements, and elements such as banners and menus according to their
// names, roles and classes. It keeps an element that contains most of the page. If only the class
// marks an element for removal, it also keeps tables, code, marked content, and elements with at
// least a quarter of the page.
func prunePage(root *html.Node) {
	prune(root, isUnseen)
	if seenLength(root)*3 < textLength(root) { // scripts show the other text
		for n := range root.Descendants() {
			if isWaiting(n) {
				n.Data, n.DataAtom, n.Attr = "div", atom.Div, nil
			}
		}
	}
	prune(root, isHidden)
	text, solid := textLengths(root, false, nil)
	textLengths(root, false, func(n *html.Node, t, s int) bool { return isBoilerplate(n) && (t+s)*4 < (text+solid)*3 })
	text, solid = textLengths(root, false, nil)
	textLengths(root, false, func(n *html.Node, t, s int) bool {
		return s == 0 && t*4 < text+solid && isPeripheral(n) && find(n, isMain) == nil
	})
}

// seenLength returns the length of the text in a node without the elements that scripts show.
func seenLength(n *html.Node) (size int) {
	switch {
	case n.Type == html.TextNode:
		return len(oneLine(n.Data))
	case isWaiting(n):
		return 0
	}
	for c := range n.ChildNodes() {
		size += seenLength(c)
	}
	return size
}

func isMain(n *html.Node) bool { return n.DataAtom == atom.Main || attr(n, "role") == "main" }

// isPeripheral reports whether the class of an element marks it as a banner, menu or link list. It
// ignores IDs, since the IDs of sections name their subject.
func isPeripheral(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Div, atom.Ul, atom.Section, atom.Form, atom.P:
		return slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(attr(n, "class")), func(r rune) bool { return !unicode.IsLetter(r) }),
			func(w string) bool { return around[w] })
	}
	return false
}

// Limits for finding the article of a page: the nodes of the page, and the largest shares of words
// outside the article: in running text if the page marks its content, in running text otherwise,
// and in tables and code.
const (
	maxArticleNodes = 40_000
	maxLostMarked   = 0.5
	maxLostText     = 0.8
	maxLostSolid    = 0.02
)

// mainContent returns the article of a pruned page unless it lacks too many words. Otherwise it
// returns the element that the page marks as its content, if that has most of the words, or the
// body.
func mainContent(root *html.Node) *html.Node {
	body := find(root, func(n *html.Node) bool { return n.DataAtom == atom.Body })
	if body == nil {
		return root
	}
	whole := body
	all := textLength(body)
	for _, want := range []func(*html.Node) bool{
		isMain,
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
		lost := maxLostText
		if whole != body {
			lost = maxLostMarked
		}
		if float64(text-keptText) <= lost*sum && float64(solid-keptSolid) <= maxLostSolid*sum {
			return article
		}
	}
	return whole
}

// articleOf returns the article that a browser's reader view would show, or nil.
func articleOf(root *html.Node) *html.Node {
	parser := readability.NewParser()
	parser.DisableJSONLD, parser.KeepClasses = true, true
	nodes := 0
	for range root.Descendants() {
		nodes++
	}
	if nodes > maxArticleNodes || !parser.CheckDocument(root) {
		return nil
	}
	// The parser works on a copy. After an error the whole page is read.
	article, err := parser.ParseDocument(root, nil)
	if err != nil || article.Node == nil {
		return nil
	}
	article.Node.Attr = nil // added by the parser
	return article.Node
}

// textLengths returns the lengths in bytes of running text outside links, and of data tables and
// code. It removes the nodes for which drop, unless nil, returns true.
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
		t, s := textLengths(c, inSolid, drop)
		if c.DataAtom == atom.A && !inSolid {
			t, s = 0, 0
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

// find returns the first element, n or a descendant, for which want returns true.
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
