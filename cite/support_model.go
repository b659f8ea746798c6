package cite

// supportModel is a logistic regression with a ridge, fitted on the 349 judged
// claims of WiCE's development set (Kamoi and others, 2023, "WiCE: Real-World
// Entailment for Claims in Wikipedia"); TestSupportModel fits it anew and says
// when the weights have changed.
var supportModel = logistic{bias: -3.23, covered: 4.72, names: -1.51, numbers: -1.90}
