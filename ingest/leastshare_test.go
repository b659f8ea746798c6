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
		"he": "משרד הנמל נפתח בשמונה בבוקר ונסגר בשש בערב. מי שרוצה לעגון את סירתו ליותר מלילה אחד חייב לשלם את האגרה לפני הצהריים, אחרת " +
			"המקום יינתן לאחר.",
		"ko": "항구 사무실은 아침 여덟 시에 열고 저녁 여섯 시에 닫습니다. 하룻밤 이상 배를 정박하려는 사람은 정오 전에 요금을 내야 하며, 그렇지 않으면 자리는 다른 사람에게 넘어갑니다.",
		"ja": "港の事務所は朝八時に開き、夕方六時に閉まります。一晩より長く船を係留したい人は、正午までに料金を支払わなければなりません。そうでなければ、その場所は他の人に渡されます。",
		"ka": "ნავსადგურის ოფისი დილის რვა საათზე იღება და საღამოს ექვს საათზე იკეტება. ვისაც სურს ნავის ერთ ღამეზე მეტხანს გაჩერება, " +
			"საფასური შუადღემდე უნდა გადაიხადოს.",
		"hy": "Նավահանգստի գրասենյակը բացվում է առավոտյան ժամը ութին և փակվում երեկոյան ժամը վեցին։ Ով ցանկանում է իր նավակը թողնել մեկ " +
			"գիշերից ավելի, պետք է վճարի մինչև կեսօր։",
		"bn": "বন্দরের কার্যালয় সকাল আটটায় খোলে এবং সন্ধ্যা ছয়টায় বন্ধ হয়। যে ব্যক্তি এক রাতের বেশি নৌকা বেঁধে রাখতে চান, তাঁকে " +
			"দুপুরের আগে ফি দিতে হবে।",
		"ml": "തുറമുഖ ഓഫീസ് രാവിലെ എട്ട് മണിക്ക് തുറക്കുകയും വൈകുന്നേരം ആറ് മണിക്ക് അടയ്ക്കുകയും ചെയ്യുന്നു. ഒരു രാത്രിയിൽ കൂടുതൽ വള്ളം " +
			"കെട്ടിയിടാൻ ആഗ്രഹിക്കുന്നവർ ഉച്ചയ്ക്ക് മുമ്പ് ഫീസ് അടയ്ക്കണം.",
		"si": "වරාය කාර්යාලය උදෑසන අටට විවෘත වන අතර සවස හයට වසා දමනු ලැබේ. එක් රාත්\u200dරියකට වඩා බෝට්ටුව නවතා තැබීමට කැමති අය දහවල් වීමට " +
			"පෙර ගාස්තුව ගෙවිය යුතුය.",
		"lo": "ຫ້ອງການທ່າເຮືອເປີດເວລາແປດໂມງເຊົ້າ ແລະປິດເວລາຫົກໂມງແລງ. ຜູ້ໃດຢາກຈອດເຮືອຫຼາຍກວ່າໜຶ່ງຄືນ ຕ້ອງຈ່າຍຄ່າທຳນຽມກ່ອນທ່ຽງ.",
		"my": "ဆိပ်ကမ်းရုံးသည် နံနက်ရှစ်နာရီတွင်ဖွင့်ပြီး ညနေခြောက်နာရီတွင်ပိတ်သည်။ တစ်ညထက်ပို၍ လှေဆိုက်ကပ်လိုသူသည် မွန်းမတည့်မီ အခကြေးပေးရမည်။",
		"am": "የወደቡ ጽሕፈት ቤት ከጠዋቱ ሁለት ሰዓት ይከፈታል እና ከምሽቱ አሥራ ሁለት ሰዓት ይዘጋል። ከአንድ ሌሊት በላይ ጀልባውን ማቆም የሚፈልግ ሰው ከቀትር በፊት ክፍያውን መክፈል አለበት።",
		"vi": "Văn phòng cảng mở cửa lúc tám giờ sáng và đóng cửa lúc sáu giờ chiều. Ai muốn neo thuyền quá một đêm phải trả phí trước buổi " +
			"trưa, nếu không chỗ đó sẽ được giao cho người khác.",
		"tr": "Liman ofisi sabah sekizde açılır ve akşam altıda kapanır. Teknesini bir geceden uzun süre bağlamak isteyen herkes ücreti " +
			"öğleden önce ödemelidir, yoksa yer başkasına verilir.",
		"fa": "دفتر بندر ساعت هشت صبح باز می\u200cشود و شش عصر بسته می\u200cشود. هر کس بخواهد قایق خود را بیش از یک شب پهلو بدهد باید هزینه " +
			"را پیش از ظهر بپردازد.",
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
