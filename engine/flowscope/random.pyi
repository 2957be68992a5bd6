"""Random functions, under TensorFlow's names.

Written by `python -m flowscope.api.exports`: what is changed here is lost.
"""

from flowscope.ops.nn.candidate_sampling import (
    all_candidate_sampler as all_candidate_sampler,
    fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
    log_uniform_candidate_sampler as log_uniform_candidate_sampler,
    uniform_candidate_sampler as uniform_candidate_sampler,
)
from flowscope.ops.nn.learned_sampling import (
    learned_unigram_candidate_sampler as learned_unigram_candidate_sampler,
)
from flowscope.ops.random.distributions import (
    categorical as categorical,
    multinomial as multinomial,
    random_gamma as gamma,
    random_poisson as poisson,
)
from flowscope.ops.random.normal_and_uniform import (
    random_normal as normal,
    random_uniform as uniform,
    truncated_normal as truncated_normal,
)
from flowscope.ops.random.seeds import (
    fold_seeds as fold_seeds,
    get_seed as get_seed,
    set_random_seed as set_random_seed,
)
from flowscope.ops.random.shuffling import (
    random_shuffle as shuffle,
)
from flowscope.ops.random.stateless import (
    stateless_binomial as stateless_binomial,
    stateless_categorical as stateless_categorical,
    stateless_gamma as stateless_gamma,
    stateless_multinomial as stateless_multinomial,
    stateless_normal as stateless_normal,
    stateless_poisson as stateless_poisson,
    stateless_truncated_normal as stateless_truncated_normal,
    stateless_uniform as stateless_uniform,
)

__all__ = [
    "all_candidate_sampler",
    "categorical",
    "fixed_unigram_candidate_sampler",
    "fold_seeds",
    "gamma",
    "get_seed",
    "learned_unigram_candidate_sampler",
    "log_uniform_candidate_sampler",
    "multinomial",
    "normal",
    "poisson",
    "set_random_seed",
    "shuffle",
    "stateless_binomial",
    "stateless_categorical",
    "stateless_gamma",
    "stateless_multinomial",
    "stateless_normal",
    "stateless_poisson",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
    "uniform_candidate_sampler",
]
