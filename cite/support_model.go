package cite

// supportModel was fitted by TestFitSupport (see SUPPORT.md).
var supportModel = logistic{bias: -4.6, covered: 5.9, plain: 0.4, names: -1.1, numbers: -1.8}
