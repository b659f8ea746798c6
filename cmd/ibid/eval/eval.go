// Package eval computes the figures by which Ibid is measured, and reads public
// benchmark formats and files of questions. It imports no other package of Ibid:
// rankings, scores and texts are arguments, so that the tests of every package
// use the same measures as the command.
//
// Rankings are measured as trec_eval and BEIR measure them (see [Metric]), so
// figures are comparable with published ones.
//
// 'ibid eval report' is one path: [ReadQuestions] gives questions, asking each
// gives an [Outcome], and a [Report] of them is written as text, JSON or HTML.
package eval
