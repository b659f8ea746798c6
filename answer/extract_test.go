package answer

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ibid/cite/marker"
	"ibid/ingest"
	"ibid/retrieve"
)

func TestExtract(t *testing.T) {
	page := func(title, text string) retrieve.Passage {
		return retrieve.Passage{
			Chunk:  ingest.Chunk{ID: "r/" + title + "#1", Document: "r/" + title, Text: text, Heading: title},
			Title:  title,
			Score:  1,
			Scores: retrieve.Scores{Dense: .6, BM25: 9, Lexical: .6, Coverage: .9},
		}
	}
	handbook := page("Handbook", "The harbour office opens at 8:00. It closes at noon on Sundays.\nDogs are welcome on the jetty.")
	marked := func(title, text string) found {
		p := page(title, text)
		p.Format = "markdown"
		return found{p}
	}
	source := func(title, text string) found {
		p := page(title, text)
		p.Format = "code"
		return found{p}
	}
	letter := page("Harbour ferry", "From: Mira Holm <mira@example.com>\nDate: Mon, 3 Mar 2025 09:00:00 +0000\n\n"+
		"The harbour ferry leaves at 9:40 now.\n\nOn Sun, 2 Mar 2025 Piet Lund wrote:\n"+
		"> The harbour ferry leaves at 8:20. Is it so?\n\nThe harbour lift is broken.")
	letter.Format, letter.Meta = "mail", map[string]string{"author": "Mira Holm <mira@example.com>", "date": "2025-03-03T09:00:00Z"}
	moved := letter
	moved.Text = "The harbour crane shuts on Friday\n\nAsk me about the crane."
	// thread is a mailbox of a mail, of its answer, which quotes it, and of what was forwarded.
	var thread found
	for i, text := range []string{
		"From: Mira Holm <mira@example.com>\nDate: Mon, 3 Mar 2025 09:00:00 +0000\n\nHello all,\n\n" +
			"The harbour crane is shut from Monday. Ask me about it.\n\n" +
			"Best regards\nMira\n\n--\nMira Holm\nHarbour crane office",
		"From: Piet Lund <piet@example.com>\nDate: Tue, 4 Mar 2025 08:00:00 +0000\n\nHi Mira,\n\n" +
			"On Mon, 3 Mar 2025 at 09:00 Mira Holm <mira@example.com>\nwrote:\n" +
			"> The harbour crane is closed for paint\n> and oil from Monday to Friday.\n\nIs that all of the harbour crane?\n\n" +
			"The harbour crane is open again.\n\nCheers,\nPiet",
		"From: Piet Lund <piet@example.com>\nDate: Wed, 5 Mar 2025 08:00:00 +0000\n\nFYI.\n\n-----Original Message-----\n" +
			"From: Ann Day <ann@example.com>\n" +
			"Sent: Tuesday, March 4, 2025 10:00 AM\nTo: Piet Lund\n\nDear Mr Lund,\n\nthe harbour lamps cost 90 marks.\n\n" +
			"Yours sincerely\nAnn Day\nHarbour lamps",
	} {
		mail := page("mbox", text)
		mail.ID, mail.Heading, mail.Format = fmt.Sprintf("r/mbox#%d", i), []string{"Harbour crane", "Re: Harbour crane",
			"FW: Harbour lamps"}[i], "mbox"
		thread = append(thread, mail)
	}
	const shut = "How to shut the harbour gate\n\nThe harbour gate is electric.\n\nPress the red button first:\n\n    gate close\n\n" +
		"1. Wait.\n2. Lock it.\n\n"
	steps := func(n int) string {
		text := "Clean the harbour pump so:\n"
		for i := range n {
			text += fmt.Sprintf("\n%d. Open valve %c, wait until the needle rests, and note on a sheet what it says.", i+1, 'A'+i%26)
		}
		return text
	}
	labelled := func(text string, label int) string {
		return regexp.MustCompile(`(?m)$`).ReplaceAllString(strings.Replace(text, "\n\n", "\n", 1), fmt.Sprintf("[%d]", label))
	}
	pump := marked("Pumps", steps(24))
	at := strings.Index(steps(24), "\n9. ")
	next := pump[0]
	next.ID, next.Start, next.End, next.Text = "r/Pumps#2", at+1, len(next.Text), next.Text[at+1:]
	pump[0].End, pump[0].Text = at, pump[0].Text[:at]
	pump = append(pump, next)
	const closest = "the closest passages"
	editions := found{page("Harbour fees_2024", "Boat: Tarn 14 | Fee: 120"), page("Harbour fees_2025", "Boat: Tarn 14 | Fee: 140")}
	for _, test := range []struct {
		name     string
		question string
		passages found
		want     string // the first piece; empty for a refusal, closest for no answer
	}{
		{"a sentence", "When does the harbour office open?", found{handbook}, "The harbour office opens at 8:00.[1]"},
		{"a code", "What does the error E11 mean?", found{page("Pumps",
			"The error E04 means that water is missing. The error E11 means that a fuse has blown.")},
			"The error E11 means that a fuse has blown.[1]"},
		{
			"a row of a table", "What is the harbour fee for a Tarn 14?",
			found{page("Harbour fees", "Boat: Skerry 17 | Fee: 140\nBoat: Tarn 14 | Fee: 120\nBoat: Pipkin | Fee: 40")},
			"Tarn 14 – Fee: 120[1]",
		},
		{"the newest edition of a document", "What is the harbour fee for a Tarn 14?", editions, "Tarn 14 – Fee: 140[2]"},
		{
			"another amount than the question's", "Can a harbour boat be hired for 3 days?",
			found{page("Harbour hire", "The crane is old.\n\nHarbour boats are hired for 2 days at most.")},
			"Harbour boats are hired for 2 days at most.[1]",
		},
		{
			"another number of the same", "Can a harbour member reserve 9 boats?",
			found{page("Harbour hire", "The crane is old.\n\nA harbour member can reserve 4 boats.")}, "A harbour member can reserve 4 boats.[1]",
		},
		{
			"not another of numbered things", "What may harbour Level 2 do?",
			found{page("Harbour levels", "Harbour Level 3 may do all.\n\nHarbour Level 2 may read.")}, "Harbour Level 2 may read.[1]",
		},
		{
			"what a pronoun means", "¿Quién fundó la capilla?", found{page("Capilla", "La capilla es blanca. La fundó Elena Marín.")},
			"La capilla es blanca.[1] La fundó Elena Marín.[1]",
		},
		{
			"what a pronoun after a verb means", "Wer hat den Kran entworfen?",
			found{page("Kran", "Der Kran ist alt. Entworfen wurde er von Hanna Brix.")},
			"Der Kran ist alt.[1] Entworfen wurde er von Hanna Brix.[1]",
		},
		{
			"what a possessive means", "Кто основал музей?", found{page("Музей", "Музей открыли в 1931 году. Его основала Вера Лунина.")},
			"Музей открыли в 1931 году.[1] Его основала Вера Лунина.[1]",
		},
		{
			"columns that have the words of the question apart", "What did a harbour berth return cost in 2024?",
			found{page("Harbour costs", "Ticket: Harbour berth | Single 2024: 6.00 | Single 2025: 6.50 | Return 2025: 11.00\n\n"+
				"A dog is free.")}, closest,
		},
		{
			"the column that has them together", "What did a harbour berth return cost in 2024?",
			found{page("Harbour costs", "Ticket: Harbour berth | Single 2024: 6.00 | Return 2024: 10.50 | Return 2025: 11.00")},
			"Harbour berth – Return 2024: 10.50[1]",
		},
		{"no amount", "How many boats does the harbour office have?", found{page("Harbour", "The harbour office has boats.")}, closest},
		{
			"no price", "Was kostet der Kran?",
			found{page("Kran", "Der Kran kostet Kraft. Er steht seit 12 Jahren.")}, closest,
		},
		{"no price in Russian", "Сколько стоит билет?", found{page("Билет", "Билет продаёт касса. Билет стоит дорого.")}, closest},
		{"no number in Spanish", "¿Cuántos barcos tiene el puerto?", found{page("Puerto", "El puerto tiene barcos.")}, closest},
		{"an amount of something else", "How much does the harbour crane lift?", found{page("Crane", "The harbour crane lifts four tonnes.")},
			"The harbour crane lifts four tonnes.[1]"},
		{"a condition", "When does the harbour lamp burn?", found{page("Lamp", "The harbour lamp burns if it is dark.")},
			"The harbour lamp burns if it is dark.[1]"},
		{
			"no heading as one of several things", "Which plans does the harbour office have?",
			found{page("Harbour plans", "Backups\n\nThe harbour office makes backups.")}, "The harbour office makes backups.[1]",
		},
		{"the steps of a section", "What are the steps of a harbour drill?",
			marked("Harbour", "Harbour drill\n\n- Leave the hall.\n- Count everybody.\n\nHarbour valve\n\nThe harbour valve is green."),
			"- Leave the hall.[1]\n- Count everybody.[1]"},
		{"the edition of a year", "What was the harbour fee for a Tarn 14 in 2024?", editions, "Tarn 14 – Fee: 120[1]"},
		{
			"the column of a table that is asked for", "What did a harbour berth cost in 2024?",
			found{page("Harbour costs", "Cost: Diesel | 2023: 80 | 2024: 90 | Paid: yes\n"+
				"Cost: Harbour berth | 2023: 140 | 2024: 150 | Paid: no. See above")},
			"Harbour berth – 2024: 150[1]",
		},
		{
			"the row of the boat that is asked for, and its column", "When is the last harbour tour of the sailing boat?",
			found{page("Harbour tours", "Boat: Rowing boat | First tour: 9:00 | Last tour: 17:00\n"+
				"Boat: Sailing boat | First tour: 10:00 | Last tour: 19:00")},
			"Sailing boat – Last tour: 19:00[1]",
		},
		{
			"no row of another boat", "What is the harbour fee for the fishing boat?",
			found{page("Harbour fees", "Boats and harbour fees.\n\nBoat: Rowing boat | Fee: 12\nBoat: Sailing boat | Fee: 45\n\n"+
				"Ask about harbour fees at the office.")},
			"Ask about harbour fees at the office.[1]",
		},
		{
			"a row that a code names", "What is the hull of the harbour boat Teal made of?",
			found{page("Harbour boats", "id: K2 | name: Dipper | built: 1998 | hull: oak\nid: K3 | name: Teal | built: 2001 | hull: steel")},
			"id: K3; name: Teal; hull: steel[1]",
		},
		{
			"a command is no row", "How do I install the harbour lamp?",
			marked("Harbour lamp", "Install the harbour lamp with `curl https://lamp.example/a.sh | sh` and set lamps[0] to 2."),
			"Install the harbour lamp with `curl https://lamp.example/a.sh | sh` and set lamps[0] to 2.[1]",
		},
		{
			"several rows", "What is the harbour fee for a Tarn and for a Skerry?",
			found{page("Harbour fees", "Boat: Skerry | Fee: 140\nBoat: Tarn | Fee: 120\nBoat: Pipkin | Fee: 40")},
			"- Skerry – Fee: 140[1]\n- Tarn – Fee: 120[1]",
		},
		{
			"a list with its lead-in", "Which things must a harbour visitor bring?",
			found{page("Harbour visitors", "A harbour visitor must bring the following:\n\n- a lamp\n- a fender\n- two ropes\n\n"+
				"The water is free.")},
			"A harbour visitor must bring the following:[1]\n- a lamp[1]\n- a fender[1]\n- two ropes[1]",
		},
		{
			"the section with the steps", "How do I shut the harbour gate?", marked("How to shut the harbour gate", shut+"Tides\n\nThey are high."),
			"The harbour gate is electric.[1] Press the red button first:[1]\n```\ngate close\n```\n1. Wait.[1]\n2. Lock it.[1]",
		},
		{
			"the section with the steps, by the heading within a passage", "How do I book a harbour seat?",
			marked("Notes", "Notes\n\nThe ferry leaves at 9:40.\n\nHow to book a harbour seat\n\n1. Call the office.\n2. Pay 4 euros.\n\n"+
				"Keep the receipt."),
			"1. Call the office.[1]\n2. Pay 4 euros.[1]\n\nKeep the receipt.[1]",
		},
		{
			"a sentence where no way is asked for", "Is the harbour gate electric?", marked("How to shut the harbour gate", shut),
			"The harbour gate is electric.[1]",
		},
		{
			"no output of a program", "What does a harbour gate need?", marked("Gates",
				"What the harbour gate needs today:\n    ID 7\n\nA harbour gate needs oil.\n\nA crane needs none."),
			"A harbour gate needs oil.[1]",
		},
		{
			"the answer under a question", "Can I bring my dog to the harbour office?",
			found{page("Questions", "Can I bring my dog to the harbour office?\n\nOnly on a lead.\n\nIs there a harbour shop?\n\nNo.")},
			"Only on a lead.[1]",
		},
		{
			"a list under its title", "What does a harbour visitor need?",
			found{page("Harbour", "What a harbour visitor needs\n\n- a lamp\n- a fender\n\nThe water is free.")},
			"- a lamp[1]\n- a fender[1]",
		},
		{
			"a title that is the answer", "Which knot ties a boat to a harbour post?",
			found{page("Knots", "Round turn and two half hitches\n\nTies a boat to a harbour post. It can be untied under load.")},
			"Round turn and two half hitches[1]\nTies a boat to a harbour post.[1]",
		},
		{
			"no heading above what is of another kind", "Which harbour bus goes to the pier?",
			found{page("Harbour", "The season\n\nThe harbour bus to the pier is number 7.")},
			"The harbour bus to the pier is number 7.[1]",
		},
		{
			"no echo of the question under a heading", "What was the harbour revenue in Q2 2020?",
			found{page("Quarter", "Figures\n\nHarbour revenue Q2 2020.\n\nIt was 6 million marks.")},
			"It was 6 million marks.[1]",
		},
		{
			"a sentence left out between two", "What does the harbour restore command need?",
			found{page("Restore", "The harbour restore command needs a disk and a key.\n\nNothing else is in the cupboard.\n\n"+
				"An old harbour restore needs this command on paper and Mira.")},
			"The harbour restore command needs a disk and a key.[1]\n\n… An old harbour restore needs this command on paper and Mira.[1]",
		},
		{
			"steps to the end", "How do I clean the harbour pump?", marked("Pumps", steps(24)),
			labelled(steps(24), 1),
		},
		{
			"steps that go on in the next passage", "How do I clean the harbour pump?", pump,
			labelled(pump[0].Text, 1) + "\n" + labelled(next.Text, 2),
		},
		{
			"a year that the row does not have", "What did the harbour sloop cost in 2025?",
			found{page("Harbour prices", "boat: Canoe | price 2024: 10 | price 2025: 12\nboat: Harbour sloop | price 2024: 30\n\n"+
				"A harbour sloop cost 35 marks in 2025.")},
			"A harbour sloop cost 35 marks in 2025.[1]",
		},
		{
			"the column of a year in Chinese", "成人门票2025年多少钱?",
			found{page("价格", "项目: 成人门票 | 2024年: 100元 | 2025年: 120元\n项目: 儿童门票 | 2024年: 50元 | 2025年: 60元")},
			"成人门票 – 2025年: 120元[1]",
		},
		{
			"a reference in the text is no citation", "When does the harbour office open?",
			found{page("Paper", "The harbour office opens at 8:00 [3].")},
			"The harbour office opens at 8:00 [3].[1]",
		},
		{
			"an open backtick", "When does the harbour office open?",
			found{page("Code", "The harbour `office opens at 8:00.")},
			"The harbour `office opens at 8:00.[1]",
		},
		{
			"a line that goes on", "When does the harbour office open?",
			found{page("Wrapped", "The harbour office opens at\nEight in the morning. Then it closes.")},
			"The harbour office opens at Eight in the morning.[1]",
		},
		{
			"a word that goes on", "When does the harbour office open?",
			found{page("Wrapped", "The harbour office opens at eight in the morn\u2010\n\ting hours.")},
			"The harbour office opens at eight in the morn\u2010ing hours.[1]",
		},
		{
			"a section of a manual", "Which exit status says that a rope has parted?",
			found{page("crane.8", "EXIT STATUS\n       0      - All boats were lifted\n       4      - A rope has parted\n"+
				"       8      - The list is empty")},
			"4 - A rope has parted[1]",
		},
		{
			"two sentences on lines that go on", "When does the harbour office open?",
			found{page("Wrapped", "\tThe harbour office opens at\n\teight o'clock. It closes again at\n\tnoon.")},
			"The harbour office opens at eight o'clock.[1] It closes again at noon.[1]",
		},
		{
			"the head of a function with the comment in it", "What does the harbour crane return?",
			source("crane.py", "lift\n\n    def lift(boat):\n\nLift a boat by the harbour crane. Returns the kilograms.\n\n"+
				"        total = crane(boat)\n        return total"),
			"```\ndef lift(boat)\n```\n[1]\nLift a boat by the harbour crane.[1] Returns the kilograms.[1]",
		},
		{
			"a field of a class with its comment", "At which pressure does the harbour pump stop?",
			source("Pump.java", "Pump\n\nA pump of the harbour.\n\n    public class Pump {\n        /** The id of the harbour pump. */\n"+
				"        static final int ID = 4;\n        /** The pressure at which the harbour pump stops. */\n        static final int MOST = 12;"),
			"```\n/** The pressure at which the harbour pump stops. */\n    static final int MOST = 12;\n```\n[1]",
		},
		{
			"a list under words of the question alone", "What are the steps of the harbour drill?",
			found{page("Harbour drill", "The steps:\n\n- Leave the hall.\n- Meet at the oak.")},
			"The steps:[1]\n- Leave the hall.[1]\n- Meet at the oak.[1]",
		},
		{
			"no licence", "How many boats may the harbour program redistribute?",
			source("boats.py", "This program is free software: you can redistribute it and/or modify\nit under the terms of the licence. "+
				"The harbour has many boats.\n\n    BOATS = 40  # boats of the harbour"),
			"```\nBOATS = 40  # boats of the harbour\n```\n[1]",
		},
		{
			"a line of a list of codes", "Which code means that the harbour office is closed?",
			found{page("Codes", "0    - The harbour office is open\n4    - The harbour office is closed\n"+
				"8    - The harbour office is on fire, and has\n       been left")},
			"4 - The harbour office is closed[1]",
		},
		{
			"an item with more than one sentence", "What about the harbour clock?",
			found{page("Minutes", "- The harbour clock is four minutes fast. A motion to correct it was lost.\n"+
				"- Keys are missing. The locks will be changed.")},
			"The harbour clock is four minutes fast.[1] A motion to correct it was lost.[1]",
		},
		{
			"a drawing", "What does the harbour plan of the pier show?",
			found{page("Plan", "The harbour plan of the pier shows a crane.\n\n    harbour plan ─▶ pier")},
			"The harbour plan of the pier shows a crane.[1]",
		},
		{
			"the number of another thing", "How many marks does the harbour course level 2 cost?",
			found{page("Courses", "The harbour course level 3 costs 90 marks. The second one is 70 marks.")},
			"The second one is 70 marks.[1]",
		},
		{
			"a yes to another question", "Can I pay the harbour fee in shells?",
			found{page("Questions", "Can I leave the harbour at night?\n\nYes, on a lead. Shells are taken as a harbour fee.\n\n"+
				"Is there a harbour shop?\n\nNo.")},
			"Shells are taken as a harbour fee.[1]",
		},
		{
			"a no with its question", "Is there a harbour shop?",
			found{page("Questions", "Can I leave the harbour at night?\n\nYes, on a lead.\n\nIs there a harbour shop?\n\nNo.")},
			"Is there a harbour shop?[1] No.[1]",
		},
		{
			"no licence", "How do I copy the harbour plan?",
			found{page("Harbour plan", "How to copy the harbour plan\n\nAsk for the harbour plan.\n\n"+
				"Permission is hereby granted to copy the harbour plan. The above copyright notice and this permission notice shall be included.")},
			"Ask for the harbour plan.[1]",
		},
		{
			"a row of other years", "What did a harbour berth cost in 2022?",
			found{page("Harbour costs", "Cost: Harbour berth | 2023: 140 | 2024: 150\n\nA harbour berth did cost 90 in 2022.")},
			"A harbour berth did cost 90 in 2022.[1]",
		},
		{
			"a row with a name", "Who is the chief pilot of the harbour?",
			found{page("Harbour people", "Post: Senior harbour pilot | Needs: chosen by the chief pilot of the harbour\n"+
				"Post: Chief pilot of the harbour | Name: Brekkan")},
			"Chief pilot of the harbour – Name: Brekkan[1]",
		},
		{"what a mail says, not what it replies to", "When does the harbour ferry leave?", found{letter},
			"The harbour ferry leaves at 9:40 now.[1]"},
		{"words under those that a mail replies to", "What about the harbour lift?", found{letter}, "The harbour lift is broken.[1]"},
		{
			"who sent a mail", "Who sent the mail about the harbour ferry?", found{letter},
			"Mira Holm <mira@example.com>, Mon, 3 Mar 2025 09:00:00 +0000:[1]\n\nThe harbour ferry leaves at 9:40 now.[1]",
		},
		{"no greeting before a mail's text", "When is the harbour crane shut?", thread[:1], "The harbour crane is shut from Monday.[1]"},
		{"a first line without a full stop", "When is the harbour crane shut?", []retrieve.Passage{moved},
			"The harbour crane shuts on Friday[1]"},
		{"no signature", "Who is at the harbour crane office?", thread[:1], "The harbour crane is shut from Monday.[1]"},
		{"the newest mail of a mailbox", "Is the harbour crane open?", thread, "The harbour crane is open again.[2]"},
		{
			"what a mail quotes, with who wrote it", "On which days is the crane closed for paint and oil?", thread[1:2],
			"On Mon, 3 Mar 2025 at 09:00 Mira Holm <mira@example.com> wrote:[1]\n\n" +
				"The harbour crane is closed for paint and oil from Monday to Friday.[1]",
		},
		{
			"who sent what was forwarded", "Who wrote that the harbour lamps cost 90 marks?", thread[2:],
			"Ann Day <ann@example.com>, Tuesday, March 4, 2025 10:00 AM:[1]\n\nthe harbour lamps cost 90 marks.[1]",
		},
		{"what is not so", "What is not in the harbour museum?",
			found{page("Museum", "In the harbour museum there is a crane. Boats are not in the museum.")},
			"Boats are not in the museum.[1]"},
		{"another subject", "How long must a leg of lamb roast?", found{handbook}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			ps := test.passages
			if test.want == "" {
				for i := range ps {
					ps[i].Scores = retrieve.Scores{Dense: .05, Lexical: .02}
				}
			}
			got := read((&Answerer{Retriever: ps}).Ask(t.Context(), Question{Text: test.question}))
			if got.err != nil {
				t.Fatal(got.err)
			}
			if test.want == "" {
				if got.text != "" || !strings.Contains(got.String(), "unanswered {Reason:nothing_relevant") {
					t.Errorf("got\n%s", got)
				}
				return
			}
			if test.want == closest && strings.Contains(got.String(), "unanswered {Reason:no_answer") {
				return
			}
			if !strings.HasPrefix(got.text, test.want) {
				t.Errorf("got %q\n%s\nwant first %q", got.text, got, test.want)
			}
		})
	}
}

// Where nothing answers surely, the parts of the passages that are nearest are shown
// whole, with the best words of the nearest sentence marked.
func TestClosest(t *testing.T) {
	for _, test := range []struct{ name, text, want, marked string }{
		{"a paragraph", "One ferry a day.\n\nMira leads the project. It ends soon.\n\nLast part.",
			"Mira leads the project. It ends soon.", "project"},
		{"a list", "People:\n- Mira leads the project\n- Piet counts", "People:\n- Mira leads the project\n- Piet counts", "project"},
		{"a row", "Person: Piet | Work: counts\nPerson: Mira | Work: leads the project", "Person: Mira | Work: leads the project", "project"},
	} {
		p := retrieve.Passage{Chunk: ingest.Chunk{ID: "r/a#1", Document: "r/a", Start: 7, Text: test.text},
			Scores: retrieve.Scores{Dense: .3, BM25: 2, Lexical: .2, Coverage: .3}}
		p.Places = []retrieve.Place{{Start: 7, Heading: "Work"}, {Start: 7 + len(test.text), Heading: "Cloakroom"}}
		var closest []Closest
		for e, err := range (&Answerer{Retriever: found{p}, Confidence: .99}).Ask(t.Context(), Question{Text: "Who runs the project?"}) {
			must(t, err)
			if e, ok := e.(Unanswered); ok {
				closest = e.Closest
			}
		}
		if len(closest) != 1 || closest[0].Text != test.want || closest[0].Heading != "Work" || len(closest[0].Marks) != 1 {
			t.Errorf("%s: got %+v, want %q", test.name, closest, test.want)
			continue
		}
		c, m := closest[0], closest[0].Marks[0]
		if c.Text[m.Start:m.End] != test.marked || test.text[c.Start-p.Start:c.End-p.Start] != test.want {
			t.Errorf("%s: marked %q at %d, want %q", test.name, c.Text[m.Start:m.End], c.Start, test.marked)
		}
	}
}

// For any documents, quotes are word for word, every piece has its own label, and
// the text has no other label.
func TestExtractQuotes(t *testing.T) {
	part := rapid.OneOf(
		rapid.SampledFrom([]string{
			"The harbour fee is 120 marks", "harbour", ". ", "? ", ":\n", "\n- ", "\n\n", "\n", " | Fee: 12",
			"\nPier: Old | Metres: 40 | Fee: 7 marks", "[1]", "[2](id=2)", "【3】",
			"-", "\u2010\n", "4 - ", "`", "```\n", "~~~\n", "**", "_", "x[0] = y[1]", "\\", "(", "日本語。", "e.g. ", "1. ", "\u00a0",
		}),
		rapid.String(),
	)
	rapid.Check(t, func(rt *rapid.T) {
		var texts []string
		for range rapid.IntRange(1, 3).Draw(rt, "passages") {
			texts = append(texts, "The harbour fee is due. "+strings.Join(rapid.SliceOf(part).Draw(rt, "text"), ""))
		}
		ps := passages(texts...)
		got := read((&Answerer{Retriever: ps, Gate: GateOff}).Ask(rt.Context(), Question{Text: "What is the harbour fee?"}))
		if got.err != nil {
			rt.Fatal(got.err)
		}
		scanner := marker.NewScanner(marker.Default, len(ps))
		quoted, labels := "", 0
		check := func(tok marker.Token) {
			if !tok.Marker {
				quoted += string(tok.Text)
				return
			}
			labels++
			if len(tok.IDs) != 1 {
				rt.Fatalf("a marker with the ids %v in %q", tok.IDs, got.text)
			}
			source := squeeze(bare(ps[tok.IDs[0]-1].Text))
			for _, cell := range between.Split(quoted, -1) { // of a row, if it is one
				if cell = strings.TrimRight(squeeze(bare(cell)), ".! "); !strings.Contains(source, cell) {
					rt.Fatalf("%q is not in %q", cell, source)
				}
			}
			quoted = ""
		}
		scanner.Feed([]byte(got.text), check)
		scanner.Close(check)
		if strings.TrimSpace(quoted) != "" {
			rt.Errorf("%q has no label in %q", quoted, got.text)
		}
		if got.text != "" && labels == 0 {
			rt.Errorf("no label in %q", got.text)
		}
	})
}

// bare removes what quoting may change: brackets around labels, signs of list
// items and of code, line ends inside of words.
func bare(s string) string {
	s = strings.NewReplacer("[", "(", "]", ")", "{", "(", "}", ")", "【", "(", "】", ")", "［", "(", "］", ")", "〔", "(", "〕", ")",
		"`", "'", "~~~", "~", "…", "").Replace(s)
	var out []string
	for f := range strings.FieldsSeq(s) {
		if !bullet.MatchString(f) {
			out = append(out, f)
		}
	}
	return regexp.MustCompile(`(\pL[-\x{2010}\x{ad}]) `).ReplaceAllString(strings.Join(out, " "), "$1")
}

var between = regexp.MustCompile(`; | – `)

var bullet = regexp.MustCompile(`^([-*+•‣◦▪●–·]|\d{1,3}[.)])$`)
