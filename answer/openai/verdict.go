package openai

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/sashabaranov/go-openai"
)

// topOdds is the number of alternatives to a verdict's first token whose probabilities
// are requested: the maximum that every server allows.
const topOdds = 5

// verdictSchema restricts a reply if the server does not report probabilities.
var verdictSchema = json.RawMessage(`{"type":"object","properties":{"verdict":{"type":"string","enum":["yes","no"]}},` +
	`"required":["verdict"],"additionalProperties":false}`)

// yesChance returns the probability of yes against no as the first token of a reply. It
// returns 0 unless the two together are more probable than all other tokens.
func yesChance(tokens []openai.LogProb) float64 {
	if len(tokens) == 0 {
		return 0
	}
	chance := map[string]float64{}
	for _, t := range tokens[0].TopLogProbs {
		chance[strings.ToLower(strings.Trim(t.Token, " \t\r\nĠ▁\"'*"))] += math.Exp(t.LogProb)
	}
	both := chance["yes"] + chance["no"]
	if both < .5 {
		return 0
	}
	const least = .001 // of either, since a model is never so sure
	return min(1-least, max(least, chance["yes"]/both))
}
