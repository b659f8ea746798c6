package format

// texKinds are the commands with an argument that means something, by what
// [texReader.withArgument] does with it.
var texKinds = map[string]string{
	"part": "heading", "chapter": "heading", "section": "heading", "subsection": "heading", "subsubsection": "heading",
	"paragraph": "heading", "subparagraph": "heading", "frametitle": "heading",
	"begin": "begin", "end": "end", "caption": "caption", "bibitem": "entry",
	"title": "about", "author": "about", "date": "about", "subtitle": "about", "keywords": "about",
	"footnote": "note", "thanks": "note", "href": "skip", "url": "raw", "path": "raw", "nolinkurl": "raw",
	"cite": "label", "citep": "label", "citet": "label", "citeauthor": "label", "citeyear": "label", "parencite": "label", "textcite": "label", "autocite": "label",
	"ref": "label", "eqref": "label", "autoref": "label", "cref": "label", "Cref": "label", "pageref": "label", "nameref": "label",
	"frac": "fraction", "dfrac": "fraction", "tfrac": "fraction", "binom": "fraction", "sqrt": "root",
}

// texLevels are the levels of the commands that begin a section.
var texLevels = map[string]int{
	"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5, "subparagraph": 6, "frametitle": 3,
}

// texEnvironments are the environments that are more than text, by what
// [texReader.environment] does with them.
var texEnvironments = map[string]string{
	"verbatim": "code", "lstlisting": "code", "minted": "code", "Verbatim": "code", "alltt": "code",
	"itemize": "list", "enumerate": "list", "description": "list", "compactitem": "list", "compactenum": "list",
	"tabular": "table", "tabularx": "table", "longtable": "table", "tabu": "table", "tblr": "table", "array": "table", "tabulary": "table",
	"equation": "formula", "align": "formula", "gather": "formula", "multline": "formula", "displaymath": "formula", "eqnarray": "formula",
	"math": "formula", "alignat": "formula", "flalign": "formula",
	"comment": "dropped", "filecontents": "dropped", "tikzpicture": "dropped", "pspicture": "dropped", "picture": "dropped", "pgfplots": "dropped", "axis": "dropped",
	"minipage": "sized", "multicols": "sized", "wrapfigure": "sized", "abstract": "abstract", "thebibliography": "bibliography",
}

// texDropped are commands that say nothing to a reader, with the number of
// their arguments.
var texDropped = map[string]int{
	"label": 1, "input": 1, "include": 1, "includeonly": 1, "includegraphics": 1, "bibliography": 1, "bibliographystyle": 1, "addbibresource": 1,
	"usepackage": 1, "documentclass": 1, "pagestyle": 1, "thispagestyle": 1, "vspace": 1, "hspace": 1, "setlength": 2, "addtolength": 2,
	"setcounter": 2, "addtocounter": 2, "newcommand": 2, "renewcommand": 2, "providecommand": 2, "newenvironment": 3, "renewenvironment": 3, "DeclareMathOperator": 2,
	"newtheorem": 2, "index": 1, "nocite": 1, "color": 1, "textcolor": 1, "colorbox": 1, "definecolor": 3, "rule": 2, "hypersetup": 1, "graphicspath": 1,
	"geometry": 1, "cline": 1, "cmidrule": 1, "multicolumn": 2, "multirow": 2, "resizebox": 2, "scalebox": 1, "raisebox": 1, "parbox": 1, "fontsize": 2,
	"selectlanguage": 1, "foreignlanguage": 1, "lstset": 1, "newacronym": 3, "subfile": 1, "import": 2, "lstinputlisting": 1, "verbatiminput": 1, "captionsetup": 1,
	"hline": 0, "toprule": 0, "midrule": 0, "bottomrule": 0, "centering": 0, "noindent": 0, "left": 0, "right": 0, "big": 0, "Big": 0, "displaystyle": 0,
	"limits": 0, "nolimits": 0, "nonumber": 0, "notag": 0, "appendix": 0, "/": 0, "today": 0,
}

// texAccents are the commands that put a mark on a letter.
var texAccents = map[string]rune{
	"'": '\u0301', "`": '\u0300', "^": '\u0302', "\"": '\u0308', "~": '\u0303', "=": '\u0304', ".": '\u0307',
	"u": '\u0306', "v": '\u030c', "H": '\u030b', "c": '\u0327', "d": '\u0323', "b": '\u0331', "r": '\u030a', "k": '\u0328',
}

// texSigns are commands for single characters.
var texSigns = map[string]string{
	"%": "%", "&": "&", "$": "$", "#": "#", "_": "_", "{": "{", "}": "}", " ": " ", ",": " ", ";": " ", ":": " ", "!": "", "-": "", "@": "", "\n": " ",
	"ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "aa": "å", "AA": "Å", "i": "i", "j": "j",
	"ldots": "…", "dots": "…", "textellipsis": "…", "S": "§", "P": "¶", "copyright": "©", "pounds": "£", "euro": "€", "texteuro": "€", "textdegree": "°", "degree": "°",
	"LaTeX": "LaTeX", "TeX": "TeX", "textbackslash": `\`, "textasciitilde": "~", "textasciicircum": "^", "textbar": "|", "textless": "<", "textgreater": ">",
	"quad": " ", "qquad": " ", "and": ", ", "slash": "/", "textendash": "–", "textemdash": "—", "guillemotleft": "«", "guillemotright": "»", "textregistered": "®", "texttrademark": "™",
	"textbullet": "•", "dag": "†", "ddag": "‡", "space": " ", "enspace": " ", "thinspace": " ",
}

// texMath are commands for the signs of mathematics.
var texMath = map[string]string{
	"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ", "vartheta": "ϑ", "iota": "ι", "kappa": "κ",
	"lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "upsilon": "υ", "phi": "φ", "varphi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω",
	"Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
	"times": "×", "cdot": "·", "div": "÷", "pm": "±", "mp": "∓", "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "neq": "≠", "ne": "≠", "approx": "≈", "equiv": "≡", "sim": "∼", "propto": "∝", "ll": "≪", "gg": "≫",
	"infty": "∞", "partial": "∂", "nabla": "∇", "sum": "∑", "prod": "∏", "int": "∫", "oint": "∮", "in": "∈", "notin": "∉", "subset": "⊂", "subseteq": "⊆", "supset": "⊃", "cup": "∪", "cap": "∩",
	"emptyset": "∅", "forall": "∀", "exists": "∃", "neg": "¬", "land": "∧", "wedge": "∧", "lor": "∨", "vee": "∨", "to": "→", "rightarrow": "→", "leftarrow": "←", "Rightarrow": "⇒", "Leftarrow": "⇐", "leftrightarrow": "↔", "Leftrightarrow": "⇔", "iff": "⇔", "implies": "⇒", "mapsto": "↦",
	"oplus": "⊕", "otimes": "⊗", "perp": "⊥", "parallel": "∥", "angle": "∠", "circ": "∘", "star": "⋆", "ast": "∗", "mid": "|", "langle": "⟨", "rangle": "⟩", "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉",
	"cdots": "⋯", "ldots": "…", "dots": "…", "vdots": "⋮", "ddots": "⋱", "prime": "′", "hbar": "ħ", "ell": "ℓ", "Re": "ℜ", "Im": "ℑ", "setminus": "∖", "log": "log", "ln": "ln", "exp": "exp", "sin": "sin", "cos": "cos", "tan": "tan", "max": "max", "min": "min", "lim": "lim", "arg": "arg", "sup": "sup", "inf": "inf", "det": "det", "dim": "dim", "Pr": "Pr", "gcd": "gcd", "mod": "mod", "bmod": "mod",
	"quad": " ", "qquad": " ", "lbrace": "{", "rbrace": "}", "|": "‖", "Vert": "‖", "vert": "|", "lVert": "‖", "rVert": "‖",
}
