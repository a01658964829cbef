"""Forms of answers: what an answer is, one pure module each. The engine moves answers about and never looks inside.

Answers are stored, compared and exported as their canonical text. A form is a module with

    SEVERAL                  whether an answer is a set of labels, out of more than can be listed. Then no true label is
                             modelled (core/latent.py) and no AC1 is told, since both take an answer for one of K
                             labels; of labels one by one the most frequent are told
    CONTROLS                 quality controls that tasks with such answers have besides those of their kind
    SIDED                    whether an answer names one of two that stand side by side, in an order drawn for each
                             person, who sends the side; such a form has from_side and to_side (pair.py)
    AGGREGATIONS             how several answers become one: name -> function of core/aggregation.py
    read(sent)               the canonical text of what a page or a program sent, a list of texts, empty if nothing
                             was; ValueError, a sentence, if it is not such an answer
    check(text, codes)       ValueError, a sentence, if this canonical text may not be given
    name(text, called)       its name for people; called: code -> name
    agrees(said, known)      whether it is right, if the answer is known (a gold answer, a test, a decoy)
    facets(text)             what statistics count one by one: the one label, or each of several
    values(codes, said)      the canonical texts that agreement tells apart, in order; said: those that were given
    distances(values)        how far two of these differ, for alpha: name -> distance as core/pairs.py has it; `nominal`
                             always, and the last is what annotators are compared by
    Measures                 the class of what predictions are worth on a gold set, as rows of core/figure_rows.py
    unlike(values)           how much of one of these is not in another, from 0 to 1, (K, K)
"""

from types import ModuleType

from annotate.kinds.forms import choice, grades, labels, pair

FORMS: dict[str, ModuleType] = {"choice": choice, "grades": grades, "labels": labels, "pair": pair}
