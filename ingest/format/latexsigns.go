package format

import "strings"

// groups makes a map of alternating values and lists of keys.
func groups(pairs ...string) map[string]string {
	m := make(map[string]string)
	for i := 0; i < len(pairs); i += 2 {
		for key := range strings.FieldsSeq(pairs[i+1]) {
			m[key] = pairs[i]
		}
	}
	return m
}

// pairs makes a map of alternating keys and values.
func pairs(words string) map[string]string {
	m := make(map[string]string)
	fields := strings.Fields(words)
	for i := 0; i+1 < len(fields); i += 2 {
		m[fields[i]] = fields[i+1]
	}
	return m
}

// texKinds are the commands with an argument that means something, by what
// [texReader.withArgument] does with it.
var texKinds = groups(
	"heading", `part chapter section subsection subsubsection paragraph subparagraph frametitle`,
	"begin", `begin`,
	"end", `end`,
	"caption", `caption`,
	"entry", `bibitem`,
	"about", `title author date subtitle keywords`,
	"note", `footnote thanks`,
	"skip", `href`,
	"raw", `url path nolinkurl`,
	"label", `cite citep citet citeauthor citeyear parencite textcite autocite ref eqref autoref cref Cref pageref nameref`,
	"fraction", `frac dfrac tfrac binom`,
	"root", `sqrt`,
)

// texEnvironments are the environments that are more than text, by what
// [texReader.environment] does with them.
var texEnvironments = groups(
	"code", `verbatim lstlisting minted Verbatim alltt`,
	"list", `itemize enumerate description compactitem compactenum`,
	"table", `tabular tabularx longtable tabu tblr array tabulary`,
	"formula", `equation align gather multline displaymath eqnarray math alignat flalign`,
	"dropped", `comment filecontents tikzpicture pspicture picture pgfplots axis`,
	"sized", `minipage multicols wrapfigure`,
	"abstract", `abstract`,
	"bibliography", `thebibliography`,
)

// texLevels are the levels of the commands that begin a section.
var texLevels = map[string]int{
	"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5, "subparagraph": 6, "frametitle": 3,
}

// texDropped are commands without text for a reader, by the number of their
// arguments.
var texDropped = [...]map[string]bool{
	0: set(`
		hline toprule midrule bottomrule centering noindent left right big Big displaystyle limits nolimits nonumber notag
		appendix / today`),
	1: set(`
		label input include includeonly includegraphics bibliography bibliographystyle addbibresource usepackage documentclass
		pagestyle thispagestyle vspace hspace index nocite color textcolor colorbox hypersetup graphicspath geometry cline
		cmidrule scalebox raisebox parbox selectlanguage foreignlanguage lstset subfile lstinputlisting verbatiminput
		captionsetup`),
	2: set(`
		setlength addtolength setcounter addtocounter newcommand renewcommand providecommand DeclareMathOperator newtheorem rule
		multicolumn multirow resizebox fontsize import`),
	3: set(`
		newenvironment renewenvironment definecolor newacronym`),
}

// texAccents are the commands that put a mark on a letter.
var texAccents = map[string]rune{
	"'": '\u0301', "`": '\u0300', "^": '\u0302', "\"": '\u0308', "~": '\u0303', "=": '\u0304', ".": '\u0307',
	"u": '\u0306', "v": '\u030c', "H": '\u030b', "c": '\u0327', "d": '\u0323', "b": '\u0331', "r": '\u030a', "k": '\u0328',
}

// texSigns are commands for single characters.
var texSigns = pairs(`
	% % & & $ $ # # _ _ { { } } ss ß ae æ AE Æ oe œ OE Œ o ø O Ø l ł L Ł aa å AA Å i i j j ldots … dots … textellipsis … S §
	P ¶ copyright © pounds £ euro € texteuro € textdegree ° degree ° LaTeX LaTeX TeX TeX textasciitilde ~ textasciicircum ^
	textbar | textless < textgreater > slash / textendash – textemdash — guillemotleft « guillemotright » textregistered ®
	texttrademark ™ textbullet • dag † ddag ‡`)

// texSpaces are commands for spaces and other characters that [pairs] cannot hold.
var texSpaces = map[string]string{
	" ": " ", ",": " ", ";": " ", ":": " ", "!": "", "-": "", "@": "", "\n": " ", "textbackslash": `\`, "quad": " ",
	"qquad": " ", "and": ", ", "space": " ", "enspace": " ", "thinspace": " ",
}

// texMath are commands for the signs of mathematics.
var texMath = pairs(`
	alpha α beta β gamma γ delta δ epsilon ε varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ lambda λ mu μ nu ν
	xi ξ pi π rho ρ sigma σ tau τ upsilon υ phi φ varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π
	Sigma Σ Phi Φ Psi Ψ Omega Ω times × cdot · div ÷ pm ± mp ∓ leq ≤ le ≤ geq ≥ ge ≥ neq ≠ ne ≠ approx ≈ equiv ≡ sim ∼
	propto ∝ ll ≪ gg ≫ infty ∞ partial ∂ nabla ∇ sum ∑ prod ∏ int ∫ oint ∮ in ∈ notin ∉ subset ⊂ subseteq ⊆ supset ⊃ cup ∪
	cap ∩ emptyset ∅ forall ∀ exists ∃ neg ¬ land ∧ wedge ∧ lor ∨ vee ∨ to → rightarrow → leftarrow ← Rightarrow ⇒ Leftarrow
	⇐ leftrightarrow ↔ Leftrightarrow ⇔ iff ⇔ implies ⇒ mapsto ↦ oplus ⊕ otimes ⊗ perp ⊥ parallel ∥ angle ∠ circ ∘ star ⋆
	ast ∗ mid | langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ cdots ⋯ ldots … dots … vdots ⋮ ddots ⋱ prime ′ hbar ħ
	ell ℓ Re ℜ Im ℑ setminus ∖ log log ln ln exp exp sin sin cos cos tan tan max max min min lim lim arg arg sup sup inf inf
	det det dim dim Pr Pr gcd gcd mod mod bmod mod lbrace { rbrace } | ‖ Vert ‖ vert | lVert ‖ rVert ‖`)
