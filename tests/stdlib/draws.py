"""How the arguments of the library's functions are drawn for tests/stdlib/coverage.py: data only.

A function is called at three shapes. Everything follows from its signature, but for what stands here. A draw is

    normal             the default of a float
    unit               between 0.1 and 0.9: a probability, a weight
    positive           between 0.5 and 2.5
    spread             normal, but no closer to 0 than 0.5
    regular            a matrix with a strong diagonal
    symmetric          a symmetric matrix whose eigenvalues are well apart (differentiated through what it is made of)
    definite           a symmetric positive matrix (likewise)
    coin               a boolean, true in two of three cells
    below NAME         an address along the coordinate NAME, or an integer below a number
    = TEXT             an integer, a boolean or a record, as written; a list of three: one for every shape
    a number           a float that is held at this value in every shape, and differentiated all the same
    |t, y| …           a function value

`extents` and `packs` give coordinates their extents in the three shapes, where the signature leaves too much open;
`results` says how many there are where the signature does not; `records` gives the fields of parameters without a type and
`parts` those of a result without one, each drawn or compared as a value of its own (`z.re`); `shapes` how many shapes are
drawn, where it is not three; `take` is the part of a record that is compared; `writes` marks the functions that are statements."""

# Parameters by name, wherever nothing else is said.
BY_NAME = {
    "stride": ["= 1", "= 2", "= 1"],
    "padding": ["= 1", "= 0", "= 1"],
    "dilation": ["= 1", "= 2", "= 1"],
    "groups": "= 2",
    "size": "= 2",
    "seed": "= 7",
    "n": ["= 5", "= 3", "= 4"],
    "steps": ["= 3", "= 4", "= 1"],
    "eps": "0.1",
    "rate": "unit",
    "momentum": "unit",
    "decay": "unit",
    "beta1": "unit",
    "beta2": "unit",
    "alpha": "unit",
    "delta": "0.7",
    "running_variance": "positive",
    "second": "positive",
    "square": "positive",
    "label": "below j",
    "rows": ["= 2", "= 3", "= 4"],
    "cols": ["= 3", "= 2", "= 5"],
    "u": "unit",
    "ceil_mode": ["= false", "= true", "= false"],
    "count_include_pad": ["= false", "= true", "= true"],
    "correction": ["= 0", "= 1", "= 0"],
}

WINDOWS = {"h": [4, 5, 3], "w": [3, 4, 5], "d": [3, 4, 3], "kh": [3, 2, 3], "kw": [2, 2, 3], "kd": [2, 2, 2],
           "p": [4, 2, 3], "q": [4, 2, 5]}
# A convolution in one group, in two, and in one.
GROUPS = ["= 1", "= 2", "= 1"]
GROUPED = {"channel": [2, 4, 1], "c": [2, 2, 1], "o": [2, 4, 3]}
TRANSPOSED = {"groups": GROUPS, "stride": ["= 1", "= 2", "= 2"], "output_padding": ["= 0", "= 0", "= 1"], "dilation": ["= 1", "= 2", "= 1"]}
OUTPUTS = {"c": [2, 2, 1], "member": [1, 2, 2], "o": [1, 4, 2]}
WIDE = {"j": [4, 3, 5]}
TALL = {"m": [4, 3, 5], "n": [2, 3, 3]}
# One step of an optimiser whose state is a record of scalars.
STEP = {"take": ".p", "rate": "0.1", "beta": "0.8", "beta1": "0.9", "beta2": "0.99", "eps": "0.01", "decay": "0.1",
        "l2": "0.1", "dampening": "0.2"}
# Initial weights: everything that they are given is an integer.
INIT = {"key": "= 7", "in": "= 4", "out": "= 2", "count": "= 5", "channels": "= 4", "width": "= 4", "hidden": "= 3", "heads": "= 2",
        "from": "= 0", "inner": "= 0"}
STATS = {"stats.variance": "positive", "stats.mean": "normal"}
BIAS_OF_KEYS = {"extents": {"h": [2, 1, 2], "d": [2, 2, 1], "a": [2, 2, 1]},
                **{name: ["= [[0.1, 0.2], [0.3, 0.4]]", "= [[0.1, 0.2]]", "= [[0.1], [0.2]]"] for name in ("p.bk", "p.attention.bk")}}
PROBABLE = {"p": "unit", "y": "unit", "t": "unit", "q": "unit"}

COMPLEX = {"parts": ["re", "im"]}
ONE = {"records": {"z": ["re", "im"]}, "z.re": "spread", "z.im": "spread"}
TWO = {"records": {"a": ["re", "im"], "b": ["re", "im"]}, "b.re": "spread", **COMPLEX}


def transform(n, norm):
    """At one shape: it compiles slowly. tests/stdlib/cases_signals.py has the others, with gradients."""
    return {"shapes": 1, "norm": f'= "{norm}"', "extents": {"t": [n]}}


BY_FUNCTION = {
    # array
    "array.one_hot": {"label": "below 3"},
    "array.slice": {"from": "= 1", "to": "= 3", "extents": WIDE},
    "array.split": {"at": "= 1", "extents": WIDE, "results": 2},
    "array.pad": {"before": ["= 1", "= 0", "= 2"], "after": ["= 2", "= 1", "= 0"]},
    "array.roll": {"by": ["= 1", "= -1", "= 3"]},
    "array.tile": {"times": "= 2"},
    "array.repeat": {"times": "= 3"},
    "array.rows_of": {"cols": ["= 2", "= 3", "= 1"], "extents": {"k": [6, 6, 4]}},
    "array.diff": {"extents": WIDE},
    "array.top_k": {"k": "= 2", "extents": WIDE, "results": 2},
    "array.bincount": {"label": "below 3", "classes": "= 3"},
    "array.unique_counts": {"label": "below 3", "classes": "= 3", "results": 3},
    "array.searchsorted": {"right": ["= false", "= true", "= false"]},
    "array.histogram": {"lo": "-1.0", "hi": "1.0", "bins": "= 4"},
    "array.take": {"at": "below j", "extents": WIDE},
    "array.scatter_add": {"at": "below 3", "n": "= 3"},
    # linalg
    "linalg.cholesky": {"a": "definite"},
    "linalg.solve_lower": {"l": "regular"},
    "linalg.solve_upper": {"u": "regular"},
    "linalg.solve_positive": {"a": "definite"},
    "linalg.lu": {"a": "regular"},
    "linalg.solve": {"a": "regular"},
    "linalg.inverse": {"a": "regular"},
    "linalg.det": {"a": "regular"},
    "linalg.logdet": {"a": "definite", "absolute": ["= true", "= false", "= true"]},
    "linalg.qr": {"extents": TALL},
    "linalg.eigenvalues": {"a": "symmetric"},
    "linalg.eigenvectors": {"a": "symmetric"},
    "linalg.eigh": {"a": "symmetric"},
    "linalg.singular_values": {"extents": TALL},
    "linalg.right_vectors": {"extents": TALL},
    "linalg.svd": {"extents": TALL, "transposed": ["= false", "= true", "= false"]},
    "linalg.least_squares": {"extents": TALL},
    # loss
    "loss.smooth_l1": {"beta": "0.7"},
    "loss.bce": PROBABLE,
    "loss.bce_safe": {**PROBABLE, "eps": "0.05"},
    "loss.cross_entropy": {"ignore_index": ["= 0", "= -1", "= 0"], "label_smoothing": "0.2"},
    "loss.cross_entropy_soft": {"t": "unit", "label_smoothing": "0.2"},
    "loss.focal": {**PROBABLE, "gamma": "2.0"},
    "loss.kl_divergence": {**PROBABLE, "log_p": ["= false", "= true", "= false"], "log_q": ["= false", "= true", "= true"]},
    "loss::backward.smooth_l1_backward": {"beta": "0.7"},
    "loss::backward.bce_backward": PROBABLE,
    "loss::backward.bce_safe_backward": {**PROBABLE, "eps": "0.05"},
    "loss::backward.cross_entropy_soft_backward": {"t": "unit"},
    "loss::backward.focal_backward": {**PROBABLE, "gamma": "2.0"},
    "loss::backward.kl_divergence_backward": PROBABLE,
    # math
    "math.reciprocal": {"x": "spread"},
    "math.rsqrt": {"x": "positive"},
    "math.log2": {"x": "positive"},
    "math.log10": {"x": "positive"},
    "math.acosh": {"x": "1.0 + positive"},
    "math.atanh": {"x": "2.0 * unit - 1.0"},
    "math.clamp": {"lo": "-0.5", "hi": "0.5"},
    "math.clip": {"lo": "-0.5", "hi": "0.5"},
    "math.logit": {"p": "unit"},
    "math.log_safe": {"x": "positive"},
    "math.sqrt_safe": {"x": "positive"},
    "math.divide_safe": {"b": "spread"},
    "math.xlogy": {"y": "positive"},
    "math.xlog1py": {"y": "positive"},
    "math.lgamma": {"x": "positive"},
    "math.digamma": {"x": "positive"},
    "math.gcd": {"a": "= 12", "b": "= 18"},
    "math.lcm": {"a": "= 12", "b": "= 18"},
    "math.gamma": {"x": "positive"},
    "math.lbeta": {"a": "positive", "b": "positive"},
    "math.sinc": {"normalized": ["= false", "= true", "= false"]},
    "math.variance": {"extents": WIDE},
    # metrics
    "metrics.accuracy": {"p": "below 3", "label": "below 3"},
    "metrics.topk_accuracy": {"k": "= 2", "extents": WIDE},
    "metrics.confusion_matrix": {"p": "below 3", "label": "below 3", "classes": "= 3"},
    "metrics.precision": {"c": "below 9"},
    "metrics.recall": {"c": "below 9"},
    "metrics.f1": {"c": "below 9"},
    # nn
    "nn::attention.masked_attention": {"mask": "coin"},
    "nn::attention.sinusoidal_positions": {"d": "= 4"},
    "nn::attention.rotary": {"extents": {"d": [4, 2, 6]}},
    "nn::backward.log_backward": {"x": "positive"},
    "nn::backward.log10_backward": {"x": "positive"},
    "nn::backward.log2_backward": {"x": "positive"},
    "nn::backward.sqrt_backward": {"x": "positive"},
    "nn::backward.clip_backward": {"lo": "-0.5", "hi": "0.5"},
    "nn::backward.divide_backward": {"b": "spread"},
    "nn::backward.power_backward": {"a": "positive"},
    "nn::backward.floor_divide_backward": {"b": "spread"},
    "nn::backward.modulo_backward": {"b": "spread"},
    "nn::backward.conv2d_backward": {"groups": "= 1", "dilation": "= 1", "results": 3, "extents": {**WINDOWS, "channel": [2, 2, 1], "c": [2, 2, 1]}},
    "nn::backward.maxpool2d_backward": {"extents": {"h": [4, 4, 3], "w": [3, 4, 2], "p": [5, 2, 4], "q": [4, 2, 3]}},
    "nn::backward.avgpool2d_backward": {"extents": {"h": [4, 4, 3], "w": [3, 4, 2], "p": [5, 2, 4], "q": [4, 2, 3]}},
    "nn::backward.dropout_backward": {"p": "0.4"},
    "nn::backward.dropout2d_backward": {"p": "0.4"},
    "nn::conv.conv_extent": {"n": "= 5", "kernel": "= 2"},
    "nn::conv.conv1d": {"groups": GROUPS, "extents": {**WINDOWS, **GROUPED, "w": [4, 5, 4]}},
    "nn::conv.conv2d": {"groups": GROUPS, "extents": {**WINDOWS, **GROUPED}},
    "nn::conv.depthwise_conv2d": {"extents": WINDOWS},
    "nn::conv.conv3d": {"groups": GROUPS, "dilation": ["= 1", "= (1, 2, 1)", "= 1"],
                        "extents": {"d": [3, 3, 2], "h": [2, 3, 2], "w": [2, 2, 3], "kd": [2, 1, 2], "kh": [1, 2, 2], "kw": [2, 2, 1],
                                    "channel": [2, 2, 1], "c": [2, 1, 1], "o": [1, 2, 1]}},
    "nn::conv.conv_transpose1d": {**TRANSPOSED, "extents": {"w": [3, 2, 4], "kw": [3, 2, 3], **OUTPUTS}},
    "nn::conv.conv_transpose2d": {**TRANSPOSED, "extents": {"h": [2, 2, 3], "w": [3, 2, 2], "kh": [3, 2, 3], "kw": [2, 3, 3], **OUTPUTS}},
    "nn::conv.conv_transpose3d": {**TRANSPOSED, "extents": {"d": [2, 1, 2], "h": [2, 2, 1], "w": [1, 2, 2], "kd": [2, 2, 3], "kh": [3, 2, 3],
                                                            "kw": [3, 2, 2], **OUTPUTS}},
    **{f"nn::weights::{f}_init": INIT for f in (
        "layers.linear", "layers.linear_no_bias", "layers.embedding", "layers.prelu", "layers.prelu_channels", "conv.conv1d", "conv.conv2d",
        "conv.conv3d", "conv.conv1d_no_bias", "conv.conv2d_no_bias", "conv.conv3d_no_bias", "conv.conv_transpose1d", "conv.conv_transpose2d",
        "conv.conv_transpose3d", "conv.conv_transpose1d_no_bias", "conv.conv_transpose2d_no_bias", "conv.conv_transpose3d_no_bias",
        "norm.layer_norm", "norm.rms_norm", "norm.batch_norm", "norm.instance_norm", "norm.group_norm", "recurrent.rnn", "recurrent.lstm",
        "recurrent.gru", "recurrent.gru_two_biases", "attention.multi_head_attention", "attention.multi_head_attention_no_bias",
        "attention.transformer_block")},
    **{f"nn::weights::conv.conv{d}d{bias}": {"extents": {**WINDOWS, "c": [4, 4, 2], "member": [2, 2, 1], "o": [2, 4, 2]}}
       for d in (1, 2) for bias in ("", "_no_bias")},
    **{f"nn::weights::conv.conv3d{bias}": {"extents": {"d": [3, 3, 2], "h": [2, 3, 2], "w": [2, 3, 3], "kd": [2, 1, 2], "kh": [1, 2, 2],
                                                       "kw": [2, 2, 1], "c": [2, 2, 2], "member": [1, 1, 1], "o": [2, 2, 2]}}
       for bias in ("", "_no_bias")},
    **{f"nn::weights::conv.conv_transpose{d}d{bias}": {"stride": "= 2", "output_padding": ["= 1", "= 0", "= 1"],
                                                       "extents": {"d": [2, 1, 2], "h": [2, 2, 1], "w": [2, 2, 3], "kd": [2, 2, 3],
                                                                   "kh": [3, 2, 3], "kw": [3, 2, 2], "c": [2, 1, 1], "o": [1, 2, 1]}}
       for d in (1, 2, 3) for bias in ("", "_no_bias")},
    "nn::weights::layers.embedding": {"tokens": "below v"},
    "nn::weights::layers.prelu_channels": {"extents": {"c": [3, 2, 4], "channels": [3, 2, 4]}},
    **{f"nn::weights::norm.{f}_norm": {"extents": {"c": [4, 2, 6], "j": [4, 2, 6], "width": [4, 2, 6], "channels": [4, 2, 6]}, **STATS}
       for f in ("layer", "rms", "instance", "group")},
    # The result does not depend on the running statistics; those are compared by tests/stdlib/weights_norm.ein.
    "nn::weights::norm.batch_norm": {"extents": {"c": [2, 3, 2], "channels": [2, 3, 2]}, "take": ".0", "results": 1,
                                     "stats.mean": ["= [0.1, 0.2]", "= [0.1, 0.2, 0.3]", "= [0.1, 0.2]"],
                                     "stats.variance": ["= [1.0, 2.0]", "= [1.0, 2.0, 3.0]", "= [1.0, 2.0]"]},
    "nn::weights::norm.batch_norm_eval": {"extents": {"c": [4, 2, 6], "channels": [4, 2, 6]}, **STATS},
    "nn::weights::norm.batch_norm_stats": INIT,
    # A bias of all keys moves all scores alike, so the derivative by `bk` is 0.
    "nn::weights::attention.multi_head_attention": {"causal": ["= false", "= false", "= true"], **BIAS_OF_KEYS},
    "nn::weights::attention.multi_head_attention_no_bias": {"causal": ["= false", "= false", "= true"]},
    "nn::weights::attention.transformer_block": {"causal": ["= false", "= true"], "shapes": 2, **BIAS_OF_KEYS},
    "nn::init.uniform_weights": {"bound": "unit"},
    "nn::init.normal_weights": {"deviation": "unit"},
    "nn::init.kaiming_kernel": {"outs": "= 2", "channels": "= 2"},
    "nn::layers.embedding": {"tokens": "below v"},
    "nn::layers.dropout": {"p": "0.4"},
    "nn::layers.dropout2d": {"p": "0.4"},
    "nn::norm.group_norm": {"extents": {"c": [4, 2, 6]}},
    "nn::pool.maxpool1d": {"extents": WINDOWS},
    "nn::pool.maxpool2d": {"extents": WINDOWS},
    "nn::pool.maxpool3d": {"dilation": "= 1", "extents": {"d": [2, 3, 2], "h": [2, 2, 3], "w": [3, 2, 2]}},
    "nn::pool.avgpool1d": {"extents": WINDOWS},
    "nn::pool.avgpool2d": {"extents": WINDOWS},
    "nn::pool.avgpool3d": {"extents": {"d": [2, 3, 2], "h": [2, 2, 3], "w": [3, 2, 2]}},
    "nn::quantize.dequantize": {"q": "below 9", "zero": "= 3"},
    "nn::quantize.quantize": {"scale": "positive", "zero": "= 3"},
    "nn::quantize.fake_quantize": {"scale": "= 0.5", "zero": "= 3.0"},
    "nn::resize.upsample_nearest": {"times": "= 2"},
    "nn::resize.upsample_bilinear": {"times": "= 2"},
    "nn::resize.depth_to_space": {"block": "= 2", "extents": {"c": [4, 8, 4]}},
    "nn::resize.space_to_depth": {"block": "= 2", "extents": {"h": [2, 4, 2], "w": [4, 2, 2]}},
    # ode
    "ode.euler": {"f": "|t, y| sin(t) - y * y", "dt": "0.1"},
    "ode.rk4": {"f": "|t, y| sin(t) - y * y", "dt": "0.1"},
    "ode.dormand_prince": {"f": "|t, y| sin(t) - y * y", "dt": "0.1", "steps": ["= 2", "= 1", "= 2"]},
    "ode.leapfrog": {"f": "|y| -sin(y)", "dt": "0.1", "results": 2},
    # ops
    "ops.divide": {"b": "spread"},
    "ops.power": {"x": "positive"},
    "ops.floor_divide": {"b": "spread"},
    "ops.modulo": {"b": "spread"},
    # optim
    **{f"optim.{name}_start": {"take": ".p"} for name in ("momentum", "adam", "amsgrad", "rmsprop", "adagrad", "lion")},
    "optim.sgd": {"rate": "0.1", "l2": "0.1"},
    "optim.momentum": {**STEP, "state": "= { p: 0.7, velocity: 0.3, step: 2 }", "nesterov": ["= false", "= true", "= false"]},
    "optim.adam": {**STEP, "state": "= { p: 0.7, m: 0.3, v: 0.5, step: 2 }"},
    "optim.adamw": {**STEP, "state": "= { p: 0.7, m: 0.3, v: 0.5, step: 2 }", "decays": "|name| true"},
    "optim.amsgrad": {**STEP, "state": "= { p: 0.7, m: 0.3, v: 0.5, most: 0.1, step: 2 }", "decays": "|name| true"},
    "optim.rmsprop": {**STEP, "state": "= { p: 0.7, v: 0.5, mean: 0.1, velocity: 0.2 }", "centered": ["= false", "= true", "= false"],
                      "beta_velocity": "0.5"},
    "optim.adagrad": {**STEP, "state": "= { p: 0.7, v: 0.5 }"},
    "optim.lion": {**STEP, "state": "= { p: 0.7, m: 0.3 }", "take": ".m"},
    "optim.clip_global_norm": {"limit": ["0.5", "0.2", "9.0"]},
    "optim.clip_value": {"limit": "0.5"},
    "optim.clip_norm": {"limit": ["0.5", "9.0", "0.2"], "packs": {"s": [[5], [2, 3], [4]]}},
    "optim.global_clip": {"limit": "0.5"},
    "optim.dynamic_loss_scale": {"scale": "512.0", "good": "= 5", "finite": ["= true", "= false", "= true"],
                                 "every": ["= 9", "= 9", "= 6"]},
    "optim.unscaled": {"scale": "positive"},
    "optim.unless": {"skip": ["= true", "= false", "= true"]},
    "optim.step_decay": {"step": "= 7", "every": "= 3", "factor": "unit"},
    "optim.exponential_decay": {"step": "= 2", "factor": "unit"},
    "optim.cosine_decay": {"step": ["= 2", "= 5", "= 6"], "steps": "= 7"},
    "optim.warmup": {"step": ["= 1", "= 3", "= 9"], "steps": "= 4"},
    "optim.warmup_cosine": {"step": ["= 1", "= 5", "= 9"], "up": "= 4", "steps": "= 20"},
    "optim.plateau": {"waited": ["= 2", "= 0", "= 0"], "patience": "= 2", "loss": ["2.0", "2.0", "0.1"],
                      "best": "unit", "factor": "unit"},
    # io, plot
    "io.save_image": {"writes": True},
    "io.save_table": {"writes": True},
    "plot.plot": {"writes": True},
    "plot.plot_over": {"writes": True},
    "plot.line": {"writes": True},
    "plot.line_over": {"writes": True},
    "plot.heatmap": {"writes": True},
    "plot.image": {"writes": True},
    # complex, fft
    "complex.polar": {"r": "positive", **COMPLEX},
    "complex.cadd": TWO,
    "complex.csub": TWO,
    "complex.cmul": TWO,
    "complex.cdiv": TWO,
    "complex.conj": {**ONE, **COMPLEX},
    "complex.cabs": ONE,
    "complex.cabs2": ONE,
    "complex.carg": ONE,
    "complex.cexp": {**ONE, **COMPLEX},
    "complex.clog": {**ONE, **COMPLEX},
    "complex.csqrt": {**ONE, **COMPLEX},
    "fft.fft": transform(5, "ortho"),
    "fft.ifft": transform(4, "backward"),
    "fft.fft2": {"shapes": 1, "norm": '= "forward"'},
    "fft.ifft2": {"shapes": 1, "norm": '= "backward"'},
    "fft.rfft": {**transform(6, "backward"), **COMPLEX},
    "fft.irfft": {**transform(3, "ortho"), "n": "= 5"},
    "fft.fft_frequencies": {"spacing": "positive"},
    "fft.rfft_frequencies": {"spacing": "positive"},
    "fft.convolve": {"shapes": 2, "mode": ['= "same"', '= "valid"'], "extents": {"t": [4, 5], "k": [3, 2]}},
    # random
    "random.below": {"n": "= 6"},
    "random.bernoulli": {"p": "unit"},
}
