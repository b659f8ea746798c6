package ingest

import (
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"
)

// A tokeniser of today's models counts at least the least share in any language,
// and less for half of the text.
func TestLeastShare(t *testing.T) {
	today := codec.NewO200kBase()
	for language, text := range map[string]string{
		"en": "The harbour office opens at eight in the morning and closes at six in the evening. Whoever wants to moor a boat for more than " +
			"one night has to pay the fee before noon, or the berth is given to somebody else.",
		"de": "Das Hafenbüro öffnet um acht Uhr morgens und schließt um sechs Uhr abends. Wer sein Boot länger als eine Nacht festmachen " +
			"möchte, muss die Gebühr vor Mittag zahlen, sonst wird der Platz anderweitig vergeben.",
		"hi": "बंदरगाह का कार्यालय सुबह आठ बजे खुलता है और शाम छह बजे बंद होता है। जो कोई अपनी नाव एक रात से अधिक बाँधना चाहता है, उसे दोपहर " +
			"से पहले शुल्क देना होगा, नहीं तो जगह किसी और को दे दी जाएगी।",
		"ar": "يفتح مكتب الميناء في الثامنة صباحا ويغلق في السادسة مساء. على من يريد إرساء قاربه أكثر من ليلة واحدة أن يدفع الرسوم قبل الظهر، " +
			"وإلا أعطي المكان لغيره.",
		"ru": "Портовая контора открывается в восемь утра и закрывается в шесть вечера. Кто хочет пришвартовать лодку дольше чем на одну " +
			"ночь, должен заплатить сбор до полудня, иначе место отдадут другому.",
		"th": "สำนักงานท่าเรือเปิดเวลาแปดโมงเช้าและปิดเวลาหกโมงเย็น ผู้ที่ต้องการจอดเรือนานกว่าหนึ่งคืนต้องชำระค่าธรรมเนียมก่อนเที่ยง " +
			"มิฉะนั้นที่จะถูกยกให้ผู้อื่น",
		"zh": "港务办公室早上八点开门，下午六点关门。想停泊一晚以上的人必须在中午之前交费，否则泊位会给别人。",
		"":   "",
		"el": "Το γραφείο του λιμανιού ανοίγει στις οκτώ το πρωί και κλείνει στις έξι το απόγευμα. Όποιος θέλει να δέσει το σκάφος του για " +
			"περισσότερο από μία νύχτα πρέπει να πληρώσει τα τέλη πριν από το μεσημέρι, αλλιώς η θέση δίνεται σε άλλον.",
		"ka": "ნავსადგურის ოფისი დილის რვა საათზე იღება და საღამოს ექვს საათზე იკეტება. ვისაც სურს ნავის ერთ ღამეზე მეტხანს გაჩერება, " +
			"საფასური შუადღემდე უნდა გადაიხადოს.",
		"lo": "ຫ້ອງການທ່າເຮືອເປີດເວລາແປດໂມງເຊົ້າ ແລະປິດເວລາຫົກໂມງແລງ. ຜູ້ໃດຢາກຈອດເຮືອຫຼາຍກວ່າໜຶ່ງຄືນ ຕ້ອງຈ່າຍຄ່າທຳນຽມກ່ອນທ່ຽງ.",
	} {
		theirs, err := today.Count(text)
		must(t, err)
		ours, least := CountTokens(text), LeastShare(text)
		share := float64(theirs) / float64(max(1, ours))
		t.Logf("%s: %d of %d tokens (%.2f), at least %.2f", language, theirs, ours, share, least)
		if text != "" && (share < 1.1*least || share/2 >= least) {
			t.Errorf("%s: %d of %d tokens are a share of %.2f, and the least is %.2f: a whole text must be above it by a tenth, half of one below",
				language, theirs, ours, share, least)
		}
	}
}
