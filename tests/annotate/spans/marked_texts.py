"""Texts in six scripts, with ten names each."""

from annotate.kinds.forms.spans import Span

# By language, a text and its ten names with their labels.
TEXTS = {
    "en": (
        "Marie Curie left Warsaw for Paris. Siemens, Nokia and the Red Cross met in Geneva. Ada read Don Quixote on "
        "the Nile, and Zoë Lévy slept.",
        "Marie Curie:PER|Warsaw:LOC|Paris:LOC|Siemens:ORG|Nokia:ORG|Red Cross:ORG|"
        "Geneva:LOC|Ada:PER|Don Quixote:MISC|Zoë Lévy:PER",
    ),
    "ar": (
        "سافر محمد علي من القاهرة إلى بغداد. زارت فاطمة دمشق مع شركة Siemens ومنظمة اليونسكو في باريس. قرأ سعيد "
        "ألف ليلة في بيروت.",
        "محمد علي:PER|القاهرة:LOC|بغداد:LOC|فاطمة:PER|دمشق:LOC|Siemens:ORG|باريس:LOC|سعيد:PER|ألف ليلة:MISC|بيروت:LOC",
    ),
    "hi": (
        "महात्मा गांधी दिल्ली से मुंबई गए। टाटा और रिलायंस कोलकाता में मिले। सीता ने रामायण पढ़ी। मीरा चेन्नई में श्रीनगर की "
        "बात करती है।",
        "महात्मा गांधी:PER|दिल्ली:LOC|मुंबई:LOC|टाटा:ORG|रिलायंस:ORG|कोलकाता:LOC|सीता:PER|रामायण:MISC|मीरा:PER|चेन्नई:LOC",
    ),
    "th": (
        "สมชายเดินทางจากกรุงเทพไปเชียงใหม่กับสมหญิง แล้วพบบริษัทโตโยต้าที่ภูเก็ต ญี่ปุ่น เกาหลี จีน ลาว",
        "กรุงเทพ:LOC|เชียงใหม่:LOC|สม:PER|หญิง:PER|ภูเก็ต:LOC|ญี่ปุ่น:LOC|เกาหลี:LOC|จีน:LOC|ลาว:LOC|บริษัท:ORG",
    ),
    "ja": (
        "田中さんは東京から大阪へ行き、トヨタとソニーの人に京都で会った。山田は『こころ』を読み、フランスとドイツへ行った。日本も。",
        "田中:PER|東京:LOC|大阪:LOC|トヨタ:ORG|ソニー:ORG|京都:LOC|山田:PER|フランス:LOC|ドイツ:LOC|日本:LOC",
    ),
    "es": (
        "👩‍👩‍👧 Ana vio 🇪🇸 en Madrid con Łukasz 👍🏽. Iberia voló a Perú 🛫, e Inés leyó Rayuela. Noël lloró 😭.",
        "👩‍👩‍👧:MISC|Ana:PER|🇪🇸:MISC|Madrid:LOC|👍🏽:MISC|Iberia:ORG|Perú:LOC|Inés:PER|Rayuela:MISC|Noël:PER",
    ),
}
KEYS = {"PER": "Digit1", "ORG": "Digit2", "LOC": "Digit3", "MISC": "Digit4"}


def marks_of(language):
    """Return the spans of a text's names, as Python finds them, in the order of the list."""
    text, names = TEXTS[language]
    spans, end = [], 0
    for name in names.split("|"):
        words, _, label = name.rpartition(":")
        start = text.find(words, end) if text.find(words, end) >= 0 else text.find(words)
        end = start + len(words)
        spans.append(Span(start, end, label))
    return spans
