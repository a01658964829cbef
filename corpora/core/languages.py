"""The table of languages: their label codes, their names, and the codes that each detector uses for them.

A detector's code is interpreted only in this module. The label codes are those of the 2015 Twitter evaluation (tl,
zh-CN, zh-TW, hi-Latn, no, he, ckb), even where CLDR prefers a different code. An installation can add languages from a
file (language_codes.py). Annotators and files may use the added languages, but detectors cannot return them.
"""

from collections.abc import Container, ItemsView, Iterable, Iterator, Mapping, ValuesView
from dataclasses import dataclass

UND = "und"  # The label of a text without a single language. No detector returns it.


@dataclass(frozen=True)
class Language:
    """A language, or a coarse code that covers several labels, which are then listed in `labels`."""

    code: str
    name: str  # English name
    autonym: str  # name in the language itself
    langid: str = ""  # this detector's codes for the language, separated by spaces; "" if it has none
    cld2: str = ""
    fasttext: str = ""
    labels: tuple[str, ...] = ()
    script: str = ""  # ISO 15924 code, if the script matters
    under: str = ""  # the listed code that covers this added language


class Languages(Mapping[str, Language]):
    """A mapping from code to language. The listed languages come first, then those added by add_names in this process.

    Adding a language replaces `known` instead of modifying it, so that a thread can iterate while another adds
    languages.
    """

    def __init__(self, listed: Iterable[Language]) -> None:
        self.known = {language.code: language for language in listed}

    def __getitem__(self, code: str) -> Language:
        return self.known[code]

    def __contains__(self, code: object) -> bool:
        return code in self.known

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)

    def items(self) -> ItemsView[str, Language]:
        return self.known.items()

    def values(self) -> ValuesView[Language]:
        return self.known.values()


LANGUAGES = Languages(
    (
        Language("ab", "Abkhazian", "аԥсшәа", "", "ab", ""),
        Language("aa", "Afar", "Qafar af", "", "aa", ""),
        Language("af", "Afrikaans", "Afrikaans", "af", "af", "af"),
        Language("ak", "Akan", "Akan", "", "ak", ""),
        Language("am", "Amharic", "አማርኛ", "am", "am", "am"),
        Language("an", "Aragonese", "aragonés", "an", "", "an"),
        Language("ar", "Arabic", "العربية", "ar", "ar", "ar arz"),
        Language("as", "Assamese", "অসমীয়া", "as", "as", "as"),
        Language("ast", "Asturian", "asturianu", "", "", "ast"),
        Language("av", "Avaric", "авар мацӀ", "", "", "av"),
        Language("ay", "Aymara", "aymar aru", "", "ay", ""),
        Language("az", "Azerbaijani", "azərbaycanca", "az", "az", "az"),
        Language("azb", "South Azerbaijani", "تۆرکجه", "", "", "azb"),
        Language("ba", "Bashkir", "башҡортса", "", "ba", "ba"),
        Language("bar", "Bavarian", "Boarisch", "", "", "bar"),
        Language("bcl", "Central Bikol", "Bikol Sentral", "", "", "bcl"),
        Language("be", "Belarusian", "беларуская", "be", "be", "be"),
        Language("bg", "Bulgarian", "български", "bg", "bg", "bg"),
        Language("bho", "Bhojpuri", "भोजपुरी", "", "", "bh"),
        Language("bi", "Bislama", "Bislama", "", "bi", ""),
        Language("bn", "Bengali", "বাংলা", "bn", "bn", "bn"),
        Language("bo", "Tibetan", "བོད་སྐད་", "", "bo", "bo"),
        Language("bpy", "Bishnupriya", "বিষ্ণুপ্রিয়া মণিপুরী", "", "", "bpy"),
        Language("br", "Breton", "brezhoneg", "br", "br", "br"),
        Language("bs", "Bosnian", "bosanski", "bs", "bs", "bs"),
        Language("bxr", "Buryat", "буряад", "", "", "bxr"),
        Language("ca", "Catalan", "català", "ca", "ca", "ca"),
        Language("cbk", "Chavacano", "Chavacano", "", "", "cbk"),
        Language("ce", "Chechen", "нохчийн", "", "", "ce"),
        Language("ceb", "Cebuano", "Cebuano", "", "ceb", "ceb"),
        Language("chr", "Cherokee", "ᏣᎳᎩ", "", "chr", ""),
        Language("ckb", "Sorani Kurdish", "کوردیی ناوەندی", "", "", "ckb"),
        Language("co", "Corsican", "corsu", "", "co", "co"),
        Language("crs", "Seselwa Creole", "kreol seselwa", "", "crs", ""),
        Language("cs", "Czech", "čeština", "cs", "cs", "cs"),
        Language("cv", "Chuvash", "чӑвашла", "", "", "cv"),
        Language("cy", "Welsh", "Cymraeg", "cy", "cy", "cy"),
        Language("da", "Danish", "dansk", "da", "da", "da"),
        Language("de", "German", "Deutsch", "de", "de", "de"),
        Language("diq", "Dimli", "Dımıli", "", "", "diq"),
        Language("dsb", "Lower Sorbian", "dolnoserbšćina", "", "", "dsb"),
        Language("dty", "Dotyali", "डोटेली", "", "", "dty"),
        Language("dv", "Maldivian", "ދިވެހި", "", "dv", "dv"),
        Language("dz", "Dzongkha", "རྫོང་ཁ་", "dz", "dz", ""),
        Language("el", "Greek", "Ελληνικά", "el", "el", "el"),
        Language("en", "English", "English", "en", "en", "en"),
        Language("eo", "Esperanto", "Esperanto", "eo", "eo", "eo"),
        Language("es", "Spanish", "español", "es", "es", "es"),
        Language("et", "Estonian", "eesti", "et", "et", "et"),
        Language("eu", "Basque", "euskara", "eu", "eu", "eu"),
        Language("fa", "Persian", "فارسی", "fa", "fa", "fa"),
        Language("fi", "Finnish", "suomi", "fi", "fi", "fi"),
        Language("fj", "Fijian", "Na Vosa Vakaviti", "", "fj", ""),
        Language("fo", "Faroese", "føroyskt", "fo", "fo", ""),
        Language("fr", "French", "français", "fr", "fr", "fr"),
        Language("frr", "Northern Frisian", "Nordfriisk", "", "", "frr"),
        Language("fy", "Western Frisian", "Frysk", "", "fy", "fy"),
        Language("ga", "Irish", "Gaeilge", "ga", "ga", "ga"),
        Language("gd", "Scottish Gaelic", "Gàidhlig", "", "gd", "gd"),
        Language("gl", "Galician", "galego", "gl", "gl", "gl"),
        Language("gn", "Guarani", "avañe'ẽ", "", "gn", "gn"),
        Language("gom", "Goan Konkani", "कोंकणी", "", "", "gom"),
        Language("gsw", "Swiss German", "Alemannisch", "", "", "als"),
        Language("gu", "Gujarati", "ગુજરાતી", "gu", "gu", "gu"),
        Language("gv", "Manx", "Gaelg", "", "gv", "gv"),
        Language("ha", "Hausa", "Hausa", "", "ha", ""),
        Language("haw", "Hawaiian", "ʻŌlelo Hawaiʻi", "", "haw", ""),
        Language("he", "Hebrew", "עברית", "he", "iw", "he"),
        Language("hi", "Hindi", "हिन्दी", "hi", "hi", "hi"),
        Language("hi-Latn", "Latinized Hindi", "Hindi (Roman)", "", "", ""),
        Language("hif", "Fiji Hindi", "Fiji Hindi", "", "", "hif"),
        Language("hmn", "Hmong", "Hmoob", "", "hmn", ""),
        Language("hr", "Croatian", "hrvatski", "hr", "hr", "hr"),
        Language("hsb", "Upper Sorbian", "hornjoserbšćina", "", "", "hsb"),
        Language("ht", "Haitian Creole", "kreyòl ayisyen", "ht", "ht", "ht"),
        Language("hu", "Hungarian", "magyar", "hu", "hu", "hu"),
        Language("hy", "Armenian", "հայերեն", "hy", "hy", "hy"),
        Language("ia", "Interlingua", "interlingua", "", "ia", "ia"),
        Language("id", "Indonesian", "Bahasa Indonesia", "id", "id", "id"),
        Language("ie", "Interlingue", "Interlingue", "", "ie", "ie"),
        Language("ig", "Igbo", "Igbo", "", "ig", ""),
        Language("ik", "Inupiaq", "Iñupiaq", "", "ik", ""),
        Language("ilo", "Iloko", "Ilokano", "", "", "ilo"),
        Language("io", "Ido", "Ido", "", "", "io"),
        Language("is", "Icelandic", "íslenska", "is", "is", "is"),
        Language("it", "Italian", "italiano", "it", "it", "it"),
        Language("iu", "Inuktitut", "ᐃᓄᒃᑎᑐᑦ", "", "iu", ""),
        Language("ja", "Japanese", "日本語", "ja", "ja", "ja"),
        Language("jbo", "Lojban", "la .lojban.", "", "", "jbo"),
        Language("jv", "Javanese", "Jawa", "jv", "jw", "jv"),
        Language("ka", "Georgian", "ქართული", "ka", "ka", "ka"),
        Language("kha", "Khasi", "Ka Ktien Khasi", "", "kha", ""),
        Language("kk", "Kazakh", "қазақ тілі", "kk", "kk", "kk"),
        Language("kl", "Greenlandic", "kalaallisut", "", "kl", ""),
        Language("km", "Khmer", "ខ្មែរ", "km", "km", "km"),
        Language("kn", "Kannada", "ಕನ್ನಡ", "kn", "kn", "kn"),
        Language("ko", "Korean", "한국어", "ko", "ko", "ko"),
        Language("krc", "Karachay-Balkar", "къарачай-малкъар", "", "", "krc"),
        Language("ks", "Kashmiri", "کٲشُر", "", "ks", ""),
        Language("ku", "Kurdish", "kurdî", "ku", "ku", "ku"),
        Language("kv", "Komi", "коми кыв", "", "", "kv"),
        Language("kw", "Cornish", "kernewek", "", "", "kw"),
        Language("ky", "Kyrgyz", "кыргызча", "ky", "ky", "ky"),
        Language("la", "Latin", "Latina", "la", "la", "la"),
        Language("lb", "Luxembourgish", "Lëtzebuergesch", "lb", "lb", "lb"),
        Language("lez", "Lezghian", "лезги", "", "", "lez"),
        Language("lg", "Ganda", "Luganda", "", "lg", ""),
        Language("li", "Limburgish", "Limburgs", "", "", "li"),
        Language("lif", "Limbu", "ᤕᤰᤌᤢᤱ ᤐᤠᤴ", "", "lif", ""),
        Language("lmo", "Lombard", "lombard", "", "", "lmo"),
        Language("ln", "Lingala", "lingála", "", "ln", ""),
        Language("lo", "Lao", "ລາວ", "lo", "lo", "lo"),
        Language("lrc", "Northern Luri", "لۊری شومالی", "", "", "lrc"),
        Language("lt", "Lithuanian", "lietuvių", "lt", "lt", "lt"),
        Language("lv", "Latvian", "latviešu", "lv", "lv", "lv"),
        Language("mai", "Maithili", "मैथिली", "", "", "mai"),
        Language("mfe", "Mauritian Creole", "kreol morisien", "", "mfe", ""),
        Language("mg", "Malagasy", "Malagasy", "mg", "mg", "mg"),
        Language("mhr", "Meadow Mari", "олык марий", "", "", "mhr"),
        Language("mi", "Maori", "te reo Māori", "", "mi", ""),
        Language("min", "Minangkabau", "Minangkabau", "", "", "min"),
        Language("mk", "Macedonian", "македонски", "mk", "mk", "mk"),
        Language("ml", "Malayalam", "മലയാളം", "ml", "ml", "ml"),
        Language("mn", "Mongolian", "монгол", "mn", "mn", "mn"),
        Language("mr", "Marathi", "मराठी", "mr", "mr", "mr"),
        Language("mrj", "Hill Mari", "кырык мары", "", "", "mrj"),
        Language("ms", "Malay", "Bahasa Melayu", "ms", "ms", "ms"),
        Language("mt", "Maltese", "Malti", "mt", "mt", "mt"),
        Language("mwl", "Mirandese", "mirandés", "", "", "mwl"),
        Language("my", "Burmese", "မြန်မာ", "", "my", "my"),
        Language("myv", "Erzya", "эрзянь", "", "", "myv"),
        Language("mzn", "Mazanderani", "مازِرونی", "", "", "mzn"),
        Language("na", "Nauru", "dorerin Naoero", "", "na", ""),
        Language("nah", "Nahuatl", "nāhuatl", "", "", "nah"),
        Language("nap", "Neapolitan", "napulitano", "", "", "nap"),
        Language("nds", "Low German", "Plattdüütsch", "", "", "nds"),
        Language("ne", "Nepali", "नेपाली", "ne", "ne", "ne"),
        Language("new", "Newari", "नेपाल भाषा", "", "", "new"),
        Language("nl", "Dutch", "Nederlands", "nl", "nl", "nl"),
        Language("no", "Norwegian", "norsk", "no nb nn", "no nn", "no nn"),
        Language("nr", "South Ndebele", "isiNdebele", "", "nr", ""),
        Language("nso", "Northern Sotho", "Sesotho sa Leboa", "", "nso", ""),
        Language("ny", "Nyanja", "Chichewa", "", "ny", ""),
        Language("oc", "Occitan", "occitan", "oc", "oc", "oc"),
        Language("om", "Oromo", "Oromoo", "", "om", ""),
        Language("or", "Odia", "ଓଡ଼ିଆ", "or", "or", "or"),
        Language("os", "Ossetic", "ирон", "", "", "os"),
        Language("pa", "Panjabi", "ਪੰਜਾਬੀ", "pa", "pa", "pa"),
        Language("pam", "Pampanga", "Kapampangan", "", "", "pam"),
        Language("pfl", "Palatine German", "Pälzisch", "", "", "pfl"),
        Language("pl", "Polish", "polski", "pl", "pl", "pl"),
        Language("pms", "Piedmontese", "piemontèis", "", "", "pms"),
        Language("pnb", "Western Panjabi", "پنجابی", "", "", "pnb"),
        Language("ps", "Pashto", "پښتو", "ps", "ps", "ps"),
        Language("pt", "Portuguese", "português", "pt", "pt", "pt"),
        Language("qu", "Quechua", "Runasimi", "qu", "qu", "qu"),
        Language("rm", "Romansh", "rumantsch", "", "rm", "rm"),
        Language("rn", "Rundi", "Ikirundi", "", "rn", ""),
        Language("ro", "Romanian", "română", "ro", "ro", "ro"),
        Language("ru", "Russian", "русский", "ru", "ru", "ru"),
        Language("rue", "Rusyn", "русиньскый", "", "", "rue"),
        Language("rw", "Kinyarwanda", "Ikinyarwanda", "rw", "rw", ""),
        Language("sa", "Sanskrit", "संस्कृतम्", "", "sa", "sa"),
        Language("sah", "Yakut", "саха тыла", "", "", "sah"),
        Language("sc", "Sardinian", "sardu", "", "", "sc"),
        Language("scn", "Sicilian", "sicilianu", "", "", "scn"),
        Language("sco", "Scots", "Scots", "", "sco", "sco"),
        Language("sd", "Sindhi", "سنڌي", "", "sd", "sd"),
        Language("se", "Northern Sami", "davvisámegiella", "se", "", ""),
        Language("sg", "Sango", "Sängö", "", "sg", ""),
        Language("sh", "Serbo-Croatian", "srpskohrvatski", "", "", "sh", labels=("bs", "hr", "sr")),
        Language("si", "Sinhala", "සිංහල", "si", "si", "si"),
        Language("sk", "Slovak", "slovenčina", "sk", "sk", "sk"),
        Language("sl", "Slovenian", "slovenščina", "sl", "sl", "sl"),
        Language("sm", "Samoan", "Gagana fa'a Sāmoa", "", "sm", ""),
        Language("sn", "Shona", "chiShona", "", "sn", ""),
        Language("so", "Somali", "Soomaali", "", "so", "so"),
        Language("sq", "Albanian", "shqip", "sq", "sq", "sq"),
        Language("sr", "Serbian", "српски", "sr", "sr", "sr"),
        Language("ss", "Swati", "siSwati", "", "ss", ""),
        Language("st", "Southern Sotho", "Sesotho", "", "st", ""),
        Language("su", "Sundanese", "Basa Sunda", "", "su", "su"),
        Language("sv", "Swedish", "svenska", "sv", "sv", "sv"),
        Language("sw", "Swahili", "Kiswahili", "sw", "sw", "sw"),
        Language("syr", "Syriac", "ܣܘܪܝܝܐ", "", "syr", ""),
        Language("ta", "Tamil", "தமிழ்", "ta", "ta", "ta"),
        Language("te", "Telugu", "తెలుగు", "te", "te", "te"),
        Language("tg", "Tajik", "тоҷикӣ", "", "tg", "tg"),
        Language("th", "Thai", "ไทย", "th", "th", "th"),
        Language("ti", "Tigrinya", "ትግርኛ", "", "ti", ""),
        Language("tk", "Turkmen", "türkmençe", "", "tk", "tk"),
        Language("tl", "Tagalog", "Tagalog", "tl", "tl", "tl"),
        Language("tn", "Tswana", "Setswana", "", "tn", ""),
        Language("to", "Tongan", "lea fakatonga", "", "to", ""),
        Language("tr", "Turkish", "Türkçe", "tr", "tr", "tr"),
        Language("ts", "Tsonga", "Xitsonga", "", "ts", ""),
        Language("tt", "Tatar", "татар", "", "tt", "tt"),
        Language("tyv", "Tuvinian", "тыва дыл", "", "", "tyv"),
        Language("ug", "Uyghur", "ئۇيغۇرچە", "ug", "ug", "ug"),
        Language("uk", "Ukrainian", "українська", "uk", "uk", "uk"),
        Language("ur", "Urdu", "اردو", "ur", "ur", "ur"),
        Language("uz", "Uzbek", "oʻzbekcha", "", "uz", "uz"),
        Language("ve", "Venda", "Tshivenḓa", "", "ve", ""),
        Language("vec", "Venetian", "veneto", "", "", "vec"),
        Language("vep", "Veps", "vepsän kel'", "", "", "vep"),
        Language("vi", "Vietnamese", "Tiếng Việt", "vi", "vi", "vi"),
        Language("vls", "West Flemish", "West-Vlams", "", "", "vls"),
        Language("vo", "Volapük", "Volapük", "vo", "vo", "vo"),
        Language("wa", "Walloon", "walon", "wa", "", "wa"),
        Language("war", "Waray", "Winaray", "", "war", "war"),
        Language("wo", "Wolof", "Wolof", "", "wo", ""),
        Language("wuu", "Wu Chinese", "吴语", "", "", "wuu"),
        Language("xal", "Kalmyk", "хальмг", "", "", "xal"),
        Language("xh", "Xhosa", "isiXhosa", "xh", "xh", ""),
        Language("xmf", "Mingrelian", "მარგალური", "", "", "xmf"),
        Language("yi", "Yiddish", "ייִדיש", "", "yi", "yi"),
        Language("yo", "Yoruba", "Yorùbá", "", "yo", "yo"),
        Language("yue", "Cantonese", "粵語", "", "", "yue"),
        Language("za", "Zhuang", "Vahcuengh", "", "za", ""),
        Language("zh", "Chinese", "中文", "zh", "zh zh-Hant", "zh", labels=("zh-CN", "zh-TW")),
        Language("zh-CN", "Simplified Chinese", "简体中文", "", "", ""),
        Language("zh-TW", "Traditional Chinese", "繁體中文", "", "", ""),
        Language("zu", "Zulu", "isiZulu", "zu", "zu", ""),
    )
)

LISTED = frozenset(LANGUAGES)

_ARTICLE = (
    "am ar bg bn bo bs ca ckb cs cy da de dv el en es et eu fa fi fr gu he hi hi-Latn hr ht hu hy id is it "
    "ja ka km kn ko lo lt lv ml mr ms my ne nl no pa pl ps pt ro ru sd si sk sl sr sv ta te th tl tr ug uk "
    "ur vi zh-CN zh-TW"
)
# The 70 labels of the 2015 article. They are the default labels of a task.
ARTICLE_LABELS: tuple[str, ...] = tuple(_ARTICLE.split())

# Groups of labels that people and detectors confuse in short texts, because the languages are closely related, or share
# a script and have similar spellings. A label may belong to several groups.
CONFUSABLE = tuple(
    tuple(group.split())
    for group in (
        "bs hr sr sl",
        "ru uk be bg mk sr",
        "ru ba bxr cv kk ky mn tg tt",
        "cs sk pl sl",
        "hsb dsb cs pl sk",
        "lt lv",
        "da no sv fo is",
        "nl af de fy li nds vls",
        "de bar gsw lb nds",
        "en nl de sco",
        "es ca gl pt an ast",
        "es it pt",
        "ca fr oc",
        "it ca ro",
        "it co lmo nap scn vec",
        "eu es",
        "fr ht wa",
        "ht crs mfe",
        "eo ia ie io",
        "ga gd gv",
        "cy br kw",
        "et fi vep",
        "hu fi et",
        "tr az tk uz",
        "id ms jv min su",
        "tl bcl ceb ilo pam war",
        "tl id ms",
        "hi mr ne bho dty gom mai new sa",
        "hi-Latn ur hif en",
        "hi-Latn id tl",
        "bn as bpy",
        "ar fa ur ps ckb sd ug azb lrc mzn",
        "he yi",
        "am ti",
        "bo dz",
        "sw ln lg rn rw so",
        "zu xh ss nr",
        "st tn nso",
        "zh-CN zh-TW wuu yue",
        "zh-CN zh-TW ja",
    )
)

# Detector codes that do not count as a vote, with the reason. Every other detector code is in LANGUAGES.
NO_VOTE: dict[tuple[str, str], str] = {
    ("cld2", "un"): "unknown",
    ("cld2", "xxx"): "text that CLD2 was told to ignore",
    ("cld2", "xx-*"): "a script, not a language",
    ("cld2", "tlh"): "Klingon: a joke class that noise in posts triggers",
    ("cld2", "zzb"): "Bork, bork, bork: a joke class",
    ("cld2", "zze"): "Elmer Fudd: a joke class",
    ("cld2", "zzh"): "hacker spelling: a joke class",
    ("cld2", "zzp"): "Pig Latin: a joke class",
    ("cld2", "bh"): "Bihari: a group of languages (Bhojpuri, Magahi, Maithili)",
    ("cld2", "sr-ME"): "Montenegrin: listed, but missing from the tables of CLD2",
    ("cld2", "ee"): "Ewe: listed, but missing from the tables of CLD2",
    ("cld2", "gaa"): "Ga: listed, but missing from the tables of CLD2",
    ("cld2", "kri"): "Krio: listed, but missing from the tables of CLD2",
    ("cld2", "loz"): "Lozi: listed, but missing from the tables of CLD2",
    ("cld2", "lua"): "Luba-Lulua: listed, but missing from the tables of CLD2",
    ("cld2", "luo"): "Luo: listed, but missing from the tables of CLD2",
    ("cld2", "new"): "Newari: listed, but missing from the tables of CLD2",
    ("cld2", "os"): "Ossetic: listed, but missing from the tables of CLD2",
    ("cld2", "pam"): "Pampanga: listed, but missing from the tables of CLD2",
    ("cld2", "raj"): "Rajasthani: listed, but missing from the tables of CLD2",
    ("cld2", "tum"): "Tumbuka: listed, but missing from the tables of CLD2",
    ("cld2", "tw"): "Twi: listed, but missing from the tables of CLD2",
    ("fasttext", "eml"): "Emiliano-Romagnolo: retired in 2009, split into two languages",
}

# Detector codes that LANGUAGES maps to a label that the standard would not give them:
#     no <- nb, nn       the article has only one label for Norwegian
#     he <- iw           CLD2 uses the code that Hebrew had until 1989
#     jv <- jw           CLD2 uses a misprint from the first edition of ISO 639
#     zh <- zh-Hant      only CLD2 distinguishes the scripts, so detectors return the coarse code zh, while zh-CN and
#                        zh-TW are used only by people
#     sh                 a coarse code: fastText's Serbo-Croatian covers bs, hr and sr
#     ar <- arz          Egyptian Arabic belongs to the macrolanguage ar, the only Arabic code of langid.py and CLD2
#     gsw <- als         fastText uses the code of the Alemannic Wikipedia; in ISO 639-3, als is Tosk Albanian
#     bho <- bh          fastText uses the code of the Bihari Wikipedia, which is written in Bhojpuri


def _own_codes(language: Language) -> dict[str, tuple[str, ...]]:
    return {
        "langid": tuple(language.langid.split()),
        "cld2": tuple(language.cld2.split()),
        "fasttext": tuple(language.fasttext.split()),
    }


_READ_AS: dict[tuple[str, str], str] = {
    (detector, own): code
    for code, language in LANGUAGES.items()
    for detector, codes in _own_codes(language).items()
    for own in codes
}

# The label codes that each detector can return.
COVERAGE: dict[str, frozenset[str]] = {
    detector: frozenset(code for (by, _), code in _READ_AS.items() if by == detector)
    for detector in ("langid", "cld2", "fasttext")
}


def normalise(detector: str, code: str) -> str | None:
    """Return the label code for a detector's code, or None if the detector's code does not count as a vote.

    Raise KeyError if the code is neither in LANGUAGES nor in NO_VOTE.
    """
    if detector == "cld2" and code.startswith("xx-"):
        code = "xx-*"
    if (detector, code) in NO_VOTE:
        return None
    return _READ_AS[detector, code]


_CONFUSABLE_WITH = {
    code: frozenset(other for group in CONFUSABLE if code in group for other in group if other != code)
    for code in LANGUAGES
}


def confusable_with(code: str) -> frozenset[str]:
    """Return the labels that are easily confused with a label. They exclude the label itself."""
    return _CONFUSABLE_WITH.get(code, frozenset())


def finer(code: str) -> tuple[str, ...]:
    """Return the labels that a coarse code covers: its listed labels, then those added under it in this process."""
    listed = LANGUAGES[code].labels if code in LANGUAGES else ()
    return (*listed, *(added.code for added in LANGUAGES.known.values() if added.under == code))


def in_its_case(given: str, known: Container[str]) -> str:
    """Return the known code that differs from the given one only in case or separators, or "" if there is none."""
    code = cased(given)
    return code if code in known else ""


def cased(code: str) -> str:
    """Return a code with each subtag in the case that BCP 47 recommends, such as zh-Hans-CN."""
    first, *others = code.replace("_", "-").lower().split("-")
    cases = {2: str.upper, 4: str.capitalize}
    return "-".join([first, *(cases.get(len(other), str)(other) for other in others)])


def published_code(language: str, languages: Iterable[str]) -> str:
    """Return the code for a language in the names of published files. It has no region: zh for zh-CN, pt for pt-BR.

    languages: all languages of the set; if two of them differ only in the region, both keep it
    """
    base, _, region = language.partition("-")
    is_region = (len(region) == 2 and region.isalpha()) or (len(region) == 3 and region.isdigit())
    alike = {code for code in languages if code.partition("-")[0] == base}
    return base if is_region and alike <= {language} else language
