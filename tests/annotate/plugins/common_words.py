"""A detector plug-in: it returns the language whose common words make up most of the text."""

from corpora.core.voters import Voter

WORDS = {
    "de": {"der", "die", "das", "und", "ist", "nicht", "ich", "ein", "zu", "es", "den", "mit", "sich", "auf", "war"},
    "en": {"the", "and", "is", "not", "i", "a", "to", "of", "it", "in", "that", "was", "he", "for", "on", "you"},
    "fr": {"le", "la", "les", "et", "est", "pas", "je", "un", "de", "à", "que", "il", "des", "en", "une", "qui"},
}


class CommonWords(Voter):
    name = "common"
    title = "common words"
    languages = frozenset(WORDS)

    def version(self):
        return "1"

    def vote(self, texts, k):
        return [self.ranking(text.lower().split())[:k] for text in texts]

    def ranking(self, words):
        shares = {code: sum(word in common for word in words) / len(words) for code, common in WORDS.items() if words}
        return sorted(((code, share) for code, share in shares.items() if share), key=lambda pair: -pair[1])
