package answer

import (
	"fmt"
	"slices"
	"strings"
)

// Graph draws the steps of an answer as a Mermaid flowchart,
// https://mermaid.js.org: a node for each call, with arrows from the passages
// and calls that it used.
func Graph(steps []Stepped) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	left := 0
	var made []int // steps whose results no other step used
	for _, s := range steps {
		if s.Step == 0 { // passages that went into no call
			left++
			fmt.Fprintf(&b, "    left%d[/\"%s: %s\"/]\n", left, passageList(s.Labels, len(s.Passages)), inWords(s.Reason))
			continue
		}
		name := fmt.Sprintf("%d %s", s.Step, s.Role)
		if s.Reason != "" {
			name += ": " + inWords(s.Reason)
		}
		fmt.Fprintf(&b, "    s%d[\"%s\"]\n", s.Step, name)
		if len(s.Passages) > 0 {
			fmt.Fprintf(&b, "    p%d[/\"%s\"/] --> s%d\n", s.Step, passageList(s.Labels, len(s.Passages)), s.Step)
		}
		for _, from := range s.From {
			fmt.Fprintf(&b, "    s%d --> s%d\n", from, s.Step)
		}
		if s.Changed {
			made = append(without(made, s.From), s.Step)
		}
	}
	for _, step := range made {
		fmt.Fprintf(&b, "    s%d --> text([\"text\"])\n", step)
	}
	return b.String()
}

// passageList names passages by their labels: "[3]–[7]".
func passageList(labels []int, passages int) string {
	switch {
	case len(labels) == 0:
		return fmt.Sprintf("%d passages", passages)
	case len(labels) == 1:
		return fmt.Sprintf("[%d]", labels[0])
	}
	if first, last := slices.Min(labels), slices.Max(labels); last-first == len(labels)-1 {
		return fmt.Sprintf("[%d]–[%d]", first, last)
	}
	return fmt.Sprint(labels)
}

// inWords replaces the underscores of a reason by spaces.
func inWords(reason string) string { return strings.ReplaceAll(reason, "_", " ") }
