package marker

import (
	"strings"
	"unicode"
)

// The words of the grammar, in lower case. Each letter matches itself and its
// simple upper case.
var (
	// keys are words allowed before the number of a document.
	keys = index(strings.Fields(`
source sources document documents doc docs passage passages reference references ref refs citation citations cite cites
excerpt excerpts snippet snippets chunk chunks context evidence evidences
quelle quellen dokument dokumente dok beleg belege referenz referenzen nachweis nachweise evidenz
référence références réf extrait extraits preuve preuves
fuente fuentes documento documentos referencia referencias pasaje pasajes fragmento fragmentos cita citas evidencia evidencias
fonte fonti fontes documenti riferimento riferimenti evidenza evidenze referência referências trecho trechos evidência evidências
bron bronnen documenten bewijs källa källor kilde kilder belägg bevis źródło źródła dowód dowody zdroj zdroje důkaz důkazy
источник источники документ документы ссылка доказательство джерело доказ kaynak kaynaklar belge kanıt sumber dokumen bukti nguồn
来源 來源 文档 文檔 资料 資料 参考 參考 参照 引用 出处 出處 出典 文献 文獻 参考文献 參考文獻 参考资料 參考資料 文書 证据 證據 証拠
출처 문서 자료 참고 참조 증거 المصدر مصدر المرجع مرجع स्रोत מקור`))

	// conjunctions are words allowed between two numbers, with spaces around them.
	conjunctions = index(strings.Fields(`and und et y e en og och i и ve`))

	// locators are words before the number of a page or another place.
	locators = index(strings.Fields(`
pages page pp pg p section sec chapter ch para lines line figure fig table seiten seite abschnitt kapitel kap zeile
páginas página pág pagina pagine pag sección seção sezione стр ページ 页 頁 쪽 § ¶ s`))

	// headings are the headings of lists of sources.
	headings = index(strings.Split(`sources|sources cited|sources used|source list|references|reference list|citations|bibliography|`+
		`works cited|footnotes|quellen|quellenangaben|quellenverzeichnis|verwendete quellen|referenzen|literatur|belege|références|`+
		`fuentes|referencias|fonti|riferimenti|fontes|referências|bronnen|källor|kilder|źródła|zdroje|источники|ссылки|`+
		`список литературы|джерела|kaynaklar|sumber|参考文献|參考文獻|参考资料|參考資料|参考来源|来源|來源|资料来源|資料來源|引用|引用来源|`+
		`引用元|参考|參考|参照|出典|출처|참고문헌|참고 문헌|참고 자료|المصادر|المراجع|מקורות|स्रोत`, "|"))
)

// Words that distinguish code and data from prose.
var (
	arrayNames = WordSet(`arr array args argv buf idx kwargs lst nums ptr tmp vals vec`)
	dataWords  = WordSet(`array interval matrix tuple vector`)
)

// index groups words by their first letter.
func index(words []string) map[rune][]string {
	m := make(map[rune][]string)
	for _, w := range words {
		first := []rune(w)[0]
		m[first] = append(m[first], w)
	}
	return m
}

// WordSet returns the words of a text as a set.
func WordSet(text string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(text) {
		m[w] = true
	}
	return m
}

// fold returns the letter of the word lists that r matches.
func fold(r rune) rune {
	if r < 0x80 {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}
	if l := unicode.ToLower(r); unicode.ToUpper(l) == r {
		return l
	}
	return r
}
