package charset

import (
	"math"
	"slices"

	"golang.org/x/text/encoding/charmap"
)

// A language lists the letters of a language beyond ASCII.
type language struct {
	letters   string // most frequent first
	encodings []encodingPrior
}

// An encodingPrior is an encoding in use for a language, with the logarithm of its frequency
// relative to the most frequent one.
type encodingPrior struct {
	chars *charmap.Charmap
	prior float64
}

// weights returns the share of each letter. Shares fall by a constant factor from one letter to the
// next, down to a fiftieth of the first. This is close to the frequencies in books, for alphabets
// of any length.
func (l language) weights() map[rune]float64 {
	letters := []rune(l.letters)
	ratio := math.Pow(0.02, 1/float64(max(1, len(letters)-1)))
	weights := make(map[rune]float64, len(letters))
	w, sum := 1.0, 0.0
	for _, r := range letters {
		weights[r] = w
		sum += w
		w *= ratio
	}
	for r := range weights {
		weights[r] /= sum
	}
	return weights
}

// Encodings by region.
var (
	western = []encodingPrior{
		{charmap.Windows1252, 0}, {charmap.ISO8859_15, -6}, {charmap.Macintosh, -8}, {charmap.CodePage850, -8}, {charmap.CodePage437, -9},
	}
	nordic   = slices.Concat(western, []encodingPrior{{charmap.CodePage865, -9}})
	central  = []encodingPrior{{charmap.Windows1250, 0}, {charmap.ISO8859_2, -0.5}, {charmap.CodePage852, -8}}
	romanian = slices.Concat(central, []encodingPrior{{charmap.ISO8859_16, -3}})
	turkish  = []encodingPrior{{charmap.Windows1254, -1}}
	baltic   = []encodingPrior{{charmap.Windows1257, -1}, {charmap.ISO8859_13, -2}, {charmap.ISO8859_4, -5}}
	cyrillic = []encodingPrior{
		{charmap.Windows1251, 0}, {charmap.KOI8R, -1}, {charmap.KOI8U, -3}, {charmap.ISO8859_5, -3},
		{charmap.CodePage866, -3}, {charmap.MacintoshCyrillic, -5}, {charmap.CodePage855, -5},
	}
	greek  = []encodingPrior{{charmap.Windows1253, 0}, {charmap.ISO8859_7, 0}}
	hebrew = []encodingPrior{{charmap.Windows1255, 0}, {charmap.ISO8859_8, -3}, {charmap.CodePage862, -6}}
	arabic = []encodingPrior{{charmap.Windows1256, 0}, {charmap.ISO8859_6, -1}}
	thai   = []encodingPrior{{charmap.Windows874, 0}}
)

// languages are the languages that have single-byte encodings.
var languages = []language{
	// Western Europe
	{"éèàçêâôîùûëïœ", western},                 // French
	{"üäöß", western},                          // German
	{"óíáñéú¿¡ü", western},                     // Spanish
	{"ãçáéíóõêâúàô", western},                  // Portuguese
	{"èàùòìé", western},                        // Italian
	{"àéèóòíçúïü·", western},                   // Catalan
	{"éëïöüèá", western},                       // Dutch
	{"åøæéöä", nordic},                         // Danish and Norwegian
	{"äåöé", nordic},                           // Swedish and Finnish
	{"íáðéþúöæóý", western},                    // Icelandic
	{"äõüöšž", slices.Concat(western, baltic)}, // Estonian
	{"éï’“”–", western},                        // English: loan words and typography
	{"ëç", western},                            // Albanian
	// Central Europe
	{"íáéěřšžčýůúťďňó", central},   // Czech
	{"áíéčžšýúťľňôďóäĺŕ", central}, // Slovak
	{"łążęóśćńź", central},         // Polish
	{"áéöőóíüúű", central},         // Hungarian
	{"ăîâşţșțé", romanian},         // Romanian
	{"čšžćđ", central},             // Slovene, Croatian, Bosnian, Serbian in Latin letters
	// The Baltic and Turkey
	{"āīēšūļžčķģņ", baltic}, // Latvian
	{"ėųįšžąčūę", baltic},   // Lithuanian
	{"ıişüçöğâîû", turkish}, // Turkish
	// Other scripts
	{"оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё", cyrillic}, // Russian
	{"аоеитнрсвлкдпмзягъубчщжйхцшюьф", cyrillic},    // Bulgarian
	{"оанівиерстклудмпязьбгчйхжїцюєшщфґ", cyrillic}, // Ukrainian
	{"аінрсецядкулоыпвмьзбгўчшйжхюэтё", cyrillic},   // Belarusian
	{"аоиенрсјтукдлмпвзгбчшњцжћхљђфџќѓѕ", cyrillic}, // Serbian and Macedonian
	{"αοιετσνηυρπκμλςάόίέθήδγχύώφβωξζψϊϋΐΰ", greek},
	{"יוהלארמתבשנעדקםפחכטגןזסצךףץ\u05bc\u05b7\u05b8\u05b4\u05b0\u05b5\u05b6\u05c1\u05b9\u05b1\u05b2\u05bb", hebrew},
	{"ايلمنوتربعدسفهكقةجحصأشىخطذثزإضءغئظؤآ،؟", arabic},
	{"ایرنوهدمتسبلشکزفگعخقحجپصآطضچغظئثذژءأؤ،؟", arabic}, // Persian
	{"านรอกเง่มยลว้ดทตสัีิปบคะหแจพชขใไืผโุู็ำ์ธณซญภถศษึฐฤฟฝฉฎฏฆฒฑฌๆฯ", thai},
}
