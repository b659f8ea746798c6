package format

import (
	"strings"

	"codeberg.org/readeck/go-readability"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// unseen elements hold nothing that a reader of the page's text sees.
var unseen = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Svg: true,
	atom.Iframe: true, atom.Object: true, atom.Embed: true, atom.Canvas: true, atom.Audio: true,
	atom.Video: true, atom.Select: true, atom.Button: true, atom.Textarea: true, atom.Head: true,
	atom.Map: true, atom.Datalist: true, atom.Dialog: true, atom.Title: true, atom.Noframes: true,
	atom.Del: true, // beside what stands in its place
}

// aside from the content, by what the element says of itself.
var besides = map[atom.Atom]bool{atom.Nav: true, atom.Aside: true, atom.Footer: true, atom.Menu: true}

var besidesRole = map[string]bool{
	"navigation": true, "banner": true, "contentinfo": true, "search": true, "complementary": true,
	"menu": true, "menubar": true, "toolbar": true, "dialog": true, "alertdialog": true,
}

func attr(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

// leftOut reports whether an element and everything in it is no content.
func leftOut(n *html.Node) bool {
	if n.Type != html.ElementNode {
		return n.Type == html.CommentNode
	}
	if unseen[n.DataAtom] || besides[n.DataAtom] || n.Data == "svg" {
		return true
	}
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "aria-hidden":
			return a.Val == "true"
		case "role":
			if besidesRole[a.Val] {
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

// prune takes what is no content out of a tree.
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

// Limits of looking for the article in a page, and of taking it for the page's
// content: the shares of the body's words that may stand outside of it, in
// running text and in tables and code.
const (
	maxArticleNodes = 40_000
	maxLostText     = 0.3
	maxLostSolid    = 0.02
)

// mainContent picks the article of a pruned page when it has one that leaves
// out little but links, else the element that the page marks as its content
// when most of the words stand in it, else the body.
func mainContent(root *html.Node) *html.Node {
	body := find(root, func(n *html.Node) bool { return n.DataAtom == atom.Body })
	if body == nil {
		return root
	}
	whole := body
	all := textLength(body)
	for _, want := range []func(*html.Node) bool{
		func(n *html.Node) bool { role, _ := attr(n, "role"); return n.DataAtom == atom.Main || role == "main" },
		func(n *html.Node) bool { return n.DataAtom == atom.Article },
	} {
		if n := find(body, want); n != nil && textLength(n)*2 >= all {
			whole = n
			break
		}
	}
	if article := articleOf(root); article != nil {
		if text, solid := lostShares(whole, article); text <= maxLostText && solid <= maxLostSolid {
			return article
		}
	}
	return whole
}

// articleOf is what a reader's view of the page would show; nil when the page
// is none to read.
func articleOf(root *html.Node) *html.Node {
	parser := readability.NewParser()
	parser.DisableJSONLD = true
	nodes := 0
	for range root.Descendants() {
		if nodes++; nodes > maxArticleNodes {
			return nil
		}
	}
	if !parser.CheckDocument(root) {
		return nil
	}
	// It works on a copy. What is wrong with the page is no error: then it is
	// read whole.
	article, err := parser.ParseDocument(root, nil)
	if err != nil || article.Node == nil {
		return nil
	}
	article.Node.Attr = nil // its own, of no page
	return article.Node
}

// lostShares are the shares of the words of whole that stand in its running
// text, and in its tables and code, and not in part. Blocks that are mostly
// links are nobody's loss.
func lostShares(whole, part *html.Node) (text, solid float64) {
	kept := make(map[string]int)
	for _, block := range blocksOf(part) {
		for w := range strings.FieldsSeq(block.text) {
			kept[w]++
		}
	}
	all, lostText, lostSolid := 0, 0, 0
	for _, block := range blocksOf(whole) {
		if block.linked*3 > len(block.text) && !block.solid {
			continue
		}
		for w := range strings.FieldsSeq(block.text) {
			all += len(w)
			if kept[w]--; kept[w] < 0 && block.solid {
				lostSolid += len(w)
			} else if kept[w] < 0 {
				lostText += len(w)
			}
		}
	}
	return float64(lostText) / float64(max(1, all)), float64(lostSolid) / float64(max(1, all))
}

// A textBlock is the text between two borders of blocks.
type textBlock struct {
	text   string
	linked int  // bytes of it in links
	solid  bool // it stands in a table of data or in code
}

func blocksOf(root *html.Node) (blocks []textBlock) {
	var text strings.Builder
	linked := 0
	end := func(solid bool) {
		if strings.TrimSpace(text.String()) != "" {
			blocks = append(blocks, textBlock{text.String(), linked, solid})
		}
		text.Reset()
		linked = 0
	}
	var walk func(n *html.Node, link, solid bool)
	walk = func(n *html.Node, link, solid bool) {
		if n.Type == html.TextNode {
			text.WriteString(n.Data)
			if link {
				linked += len(n.Data)
			}
			return
		}
		link = link || n.DataAtom == atom.A
		border := blockElements[n.DataAtom] || n.DataAtom == atom.Li || n.DataAtom == atom.Pre
		if border {
			end(solid)
		}
		inner := solid || n.DataAtom == atom.Pre || n.DataAtom == atom.Table && !isLayout(n)
		for c := range n.ChildNodes() {
			walk(c, link, inner)
		}
		if border {
			end(inner)
		}
	}
	walk(root, false, false)
	end(false)
	return blocks
}

func find(n *html.Node, want func(*html.Node) bool) *html.Node {
	if n.Type == html.ElementNode && want(n) {
		return n
	}
	for c := range n.ChildNodes() {
		if f := find(c, want); f != nil {
			return f
		}
	}
	return nil
}

func textLength(n *html.Node) int {
	if n.Type == html.TextNode {
		return len(strings.TrimSpace(n.Data))
	}
	if leftOut(n) {
		return 0
	}
	sum := 0
	for c := range n.ChildNodes() {
		sum += textLength(c)
	}
	return sum
}
