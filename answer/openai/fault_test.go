package openai_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/answer/openai/openaitest"
)

// Neither of these may be seen in an error.
const (
	canaryKey    = "sk-canary-31415926535897932384626433832795"
	canaryPrompt = "The canary of the document sings at dawn, and no error may repeat the song."
)

const replyText = "High water stands at noon [1], and again at midnight [2]; café ☕ included."

// timely tells the faults that are about time: they are run only where time
// costs nothing.
const (
	inTime    = false
	takesTime = true
)

type outcome struct {
	kind     openai.Kind // empty: the whole reply comes through
	partial  bool        // a part of the text came first
	requests int         // made in all
	timely   bool
}

// ofAny is what becomes of a fault of any endpoint.
var ofAny = map[openaitest.Fault]outcome{
	"":                          {"", false, 1, inTime},
	openaitest.RateLimit:        {openai.RateLimited, false, 3, takesTime},
	openaitest.RateLimitSeconds: {openai.RateLimited, false, 3, takesTime},
	openaitest.RateLimitDate:    {openai.RateLimited, false, 3, takesTime},
	openaitest.RateLimitLong:    {openai.RateLimited, false, 1, inTime},
	openaitest.Quota:            {openai.OutOfQuota, false, 1, inTime},
	openaitest.ServerError:      {openai.ServerFailed, false, 3, takesTime},
	openaitest.EchoHeaders:      {openai.ServerFailed, false, 3, takesTime},
	openaitest.HugeError:        {openai.ServerFailed, false, 3, takesTime},
	openaitest.BadGateway:       {openai.ServerFailed, false, 3, takesTime},
	openaitest.Unavailable:      {openai.ServerFailed, false, 3, takesTime},
	openaitest.GatewayTimeout:   {openai.ServerFailed, false, 3, takesTime},
	openaitest.Overloaded:       {openai.ServerFailed, false, 3, takesTime},
	openaitest.BadRequest:       {openai.Rejected, false, 1, inTime},
	openaitest.ContextLength:    {openai.ContextLength, false, 1, inTime},
	openaitest.ContentFilter:    {openai.Filtered, false, 1, inTime},
	openaitest.Unauthorized:     {openai.Unauthorized, false, 1, inTime},
	openaitest.Forbidden:        {openai.Unauthorized, false, 1, inTime},
	openaitest.NoModel:          {openai.NotFound, false, 1, inTime},
	openaitest.Redirect:         {openai.BadReply, false, 1, inTime},
	openaitest.HeaderStall:      {openai.TimedOut, false, 1, takesTime},
	openaitest.HangUp:           {openai.Cut, false, 3, takesTime},
	openaitest.NotHTTP:          {openai.BadReply, false, 1, inTime},
	openaitest.HugeHeader:       {openai.BadReply, false, 1, inTime},
	openaitest.HTML:             {openai.BadReply, false, 1, inTime},
	openaitest.ErrorObject:      {openai.ServerFailed, false, 3, takesTime},
	openaitest.ErrorString:      {openai.ServerFailed, false, 3, takesTime},
	openaitest.HugeBody:         {openai.BadReply, false, 1, inTime},
	openaitest.ShortBody:        {openai.Cut, false, 3, takesTime},
	openaitest.SlowBody:         {openai.TimedOut, false, 1, takesTime},
}

// ofChat, ofWhole, ofVectors and ofScores are the faults of one endpoint, and those that mean
// something else there.
var (
	ofChat = map[openaitest.Fault]outcome{
		openaitest.NoStreamOptions:   {"", false, 2, inTime},
		openaitest.Empty:             {openai.Cut, false, 3, takesTime},
		openaitest.LongBody:          {openai.Cut, false, 3, takesTime},
		openaitest.FirstTokenStall:   {openai.TimedOut, false, 1, takesTime},
		openaitest.KeepAliveForever:  {openai.TimedOut, false, 1, takesTime},
		openaitest.MiddleStall:       {openai.TimedOut, true, 1, takesTime},
		openaitest.Reset:             {openai.Cut, true, 1, inTime},
		openaitest.ResetFirst:        {openai.Cut, false, 3, takesTime},
		openaitest.NoFinish:          {openai.Cut, true, 1, inTime},
		openaitest.DoneWithoutFinish: {openai.Cut, true, 1, inTime},
		openaitest.FinishWithoutDone: {"", false, 1, inTime},
		openaitest.CutJSON:           {openai.Cut, true, 1, inTime},
		openaitest.CutRune:           {openai.Cut, true, 1, inTime},
		openaitest.Malformed:         {openai.BadReply, true, 1, inTime},
		openaitest.LineCR:            {"", false, 1, inTime},
		openaitest.LineCRLF:          {"", false, 1, inTime},
		openaitest.NoSpace:           {"", false, 1, inTime},
		openaitest.NoBlankLine:       {"", false, 1, inTime},
		openaitest.ByteByByte:        {"", false, 1, inTime},
		openaitest.KeepAlives:        {"", false, 1, inTime},
		openaitest.RoleOnly:          {"", false, 1, inTime},
		openaitest.UsageFirst:        {"", false, 1, inTime},
		openaitest.DoneTwice:         {"", false, 1, inTime},
		openaitest.NoUsage:           {"", false, 1, inTime},
		openaitest.PlainJSON:         {"", false, 1, inTime},
		openaitest.HugeLine:          {openai.BadReply, false, 1, inTime},
		openaitest.HugeText:          {openai.BadReply, true, 1, inTime},
		openaitest.ErrorEvent:        {openai.ServerFailed, true, 1, inTime},
		openaitest.ErrorEventBare:    {openai.ServerFailed, true, 1, inTime},
		openaitest.ErrorMiddle:       {openai.ServerFailed, true, 1, inTime},
		openaitest.ErrorSpaced:       {openai.ServerFailed, true, 1, inTime},
		openaitest.EmptyChoices:      {openai.Cut, false, 3, takesTime},
		openaitest.FinishNull:        {openai.Cut, true, 1, inTime},
		openaitest.FinishUnknown:     {openai.Cut, true, 1, inTime},
	}
	// The client always asks for a stream. These are the faults of a whole
	// reply that comes in its place, beside those of any endpoint.
	ofWhole = map[openaitest.Fault]outcome{
		openaitest.NoStreamOptions: {"", false, 2, inTime},
		openaitest.Empty:           {openai.Cut, false, 3, takesTime},
		openaitest.LongBody:        {openai.Cut, false, 3, takesTime},
		openaitest.FirstTokenStall: {openai.TimedOut, false, 1, takesTime},
		openaitest.MiddleStall:     {openai.TimedOut, false, 1, takesTime},
		openaitest.Reset:           {openai.Cut, false, 3, takesTime},
		openaitest.CutJSON:         {openai.Cut, false, 3, takesTime},
		openaitest.CutRune:         {openai.Cut, false, 3, takesTime},
		openaitest.Malformed:       {openai.BadReply, false, 1, inTime},
		openaitest.HugeText:        {openai.BadReply, false, 1, inTime},
		openaitest.ByteByByte:      {"", false, 1, inTime},
		openaitest.NoUsage:         {"", false, 1, inTime},
		openaitest.EmptyChoices:    {openai.Cut, false, 3, takesTime},
		openaitest.NoFinish:        {openai.Cut, true, 1, inTime},
		openaitest.FinishNull:      {openai.Cut, true, 1, inTime},
		openaitest.FinishUnknown:   {openai.Cut, true, 1, inTime},
	}
	ofVectors = map[openaitest.Fault]outcome{
		openaitest.Empty:           {openai.BadReply, false, 1, inTime},
		openaitest.LongBody:        {openai.BadReply, false, 1, inTime},
		openaitest.EmbedShort:      {openai.BadReply, false, 1, inTime},
		openaitest.EmbedLong:       {openai.BadReply, false, 1, inTime},
		openaitest.EmbedPermuted:   {"", false, 1, inTime},
		openaitest.EmbedSameIndex:  {openai.BadReply, false, 1, inTime},
		openaitest.EmbedMixed:      {openai.BadReply, false, 1, inTime},
		openaitest.EmbedDimensions: {openai.BadReply, false, 1, inTime},
		openaitest.EmbedZero:       {openai.BadReply, false, 1, inTime},
		openaitest.EmbedNaN:        {openai.BadReply, false, 1, inTime},
		openaitest.EmbedOverflow:   {openai.BadReply, false, 1, inTime},
		openaitest.EmbedNull:       {openai.BadReply, false, 1, inTime},
		openaitest.EmbedBase64:     {openai.BadReply, false, 1, inTime},
		openaitest.EmbedNothing:    {openai.BadReply, false, 1, inTime},
	}
	ofScores = map[openaitest.Fault]outcome{
		openaitest.Empty:         {openai.BadReply, false, 1, inTime},
		openaitest.LongBody:      {openai.BadReply, false, 1, inTime},
		openaitest.RankShort:     {openai.BadReply, false, 1, inTime},
		openaitest.RankLong:      {openai.BadReply, false, 1, inTime},
		openaitest.RankPermuted:  {"", false, 1, inTime},
		openaitest.RankSameIndex: {openai.BadReply, false, 1, inTime},
		openaitest.RankNoIndex:   {openai.BadReply, false, 1, inTime},
		openaitest.RankNull:      {openai.BadReply, false, 1, inTime},
		openaitest.RankText:      {openai.BadReply, false, 1, inTime},
		openaitest.RankOverflow:  {openai.BadReply, false, 1, inTime},
		openaitest.RankNothing:   {openai.BadReply, false, 1, inTime},
	}
)

// TestEveryFaultIsExpected fails when the server learns a fault that the
// tables above do not have.
func TestEveryFaultIsExpected(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "openaitest/fault.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !spec.Names[0].IsExported() {
			return true
		}
		lit, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		n++
		f := openaitest.Fault(strings.Trim(lit.Value, `"`))
		_, any := ofAny[f]
		_, chat := ofChat[f]
		_, vectors := ofVectors[f]
		_, scores := ofScores[f]
		if !any && !chat && !vectors && !scores {
			t.Errorf("%s (%q) is in no table", spec.Names[0], f)
		}
		return true
	})
	if n < 60 {
		t.Errorf("found only %d faults", n)
	}
}

func merged(more map[openaitest.Fault]outcome) map[openaitest.Fault]outcome {
	all := make(map[openaitest.Fault]outcome)
	for f, o := range ofAny {
		all[f] = o
	}
	for f, o := range more {
		all[f] = o
	}
	return all
}

// drain reads a reply to its end.
func drain(m answer.Model, ctx context.Context, p answer.Prompt) (text string, last answer.Piece, err error) {
	var b strings.Builder
	for piece, e := range m.Complete(ctx, p) {
		if err != nil || last.Finish != "" {
			panic("a piece came behind the last one")
		}
		b.WriteString(piece.Text)
		last, err = piece, e
	}
	return b.String(), last, err
}

// checkError checks what holds for every error.
func checkError(t *testing.T, err error, want outcome) {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v (%T), want an *openai.Error", err, err)
	}
	if e.Kind != want.kind {
		t.Errorf("got kind %s, want %s: %v", e.Kind, want.kind, err)
	}
	if e.Requests != want.requests {
		t.Errorf("the error counts %d requests, want %d", e.Requests, want.requests)
	}
	for err := err; err != nil; err = errors.Unwrap(err) {
		for _, secret := range []string{canaryKey[10:20], canaryKey[len(canaryKey)-10:], canaryPrompt[10:40]} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("an error holds a secret: %v", err)
			}
		}
		if n := len(err.Error()); n > 1000 {
			t.Errorf("an error has %d bytes", n)
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) != (e.Kind == openai.TimedOut) {
		t.Errorf("the error wraps the wrong error of the context: %v", err)
	}
	if errors.Is(err, answer.ErrContextLength) != (e.Kind == openai.ContextLength) {
		t.Errorf("kind %s, but errors.Is says otherwise of answer.ErrContextLength", e.Kind)
	}
	if e.Kind == openai.Cut && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut reply does not wrap io.ErrUnexpectedEOF")
	}
}

// chatFault plays one fault to a chat.
func chatFault(t *testing.T, o openai.Options, h *openaitest.Handler, fault openaitest.Fault, want outcome) {
	h.Reply = func(openaitest.Request) openaitest.Reply {
		return openaitest.Reply{Text: replyText, Fault: fault, Location: o.BaseURL + "/elsewhere"}
	}
	playChat(t, o, h, fault, want, false)
}

// wholeFault plays one fault to a chat whose reply comes whole.
func wholeFault(t *testing.T, o openai.Options, h *openaitest.Handler, fault openaitest.Fault, want outcome) {
	h.Reply = func(openaitest.Request) openaitest.Reply {
		return openaitest.Reply{Text: replyText, Whole: true, Fault: fault, Location: o.BaseURL + "/elsewhere"}
	}
	playChat(t, o, h, fault, want, true)
}

func playChat(t *testing.T, o openai.Options, h *openaitest.Handler, fault openaitest.Fault, want outcome, whole bool) {
	client, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	text, last, err := drain(client, t.Context(), answer.Prompt{Role: answer.RoleAnswer, System: "Answer.", User: canaryPrompt})
	exchanges := h.Exchanges()
	if len(exchanges) != want.requests {
		t.Errorf("%d requests, want %d", len(exchanges), want.requests)
	}
	for _, x := range exchanges {
		if x.Role != "answer" || !strings.HasSuffix(x.Path, "/v1/chat/completions") {
			t.Errorf("request for role %q to %s", x.Role, x.Path)
		}
	}
	if want.kind == "" {
		if err != nil || text != replyText || last.Finish != "stop" {
			t.Errorf("got %q, finish %q, error %v", text, last.Finish, err)
		}
		if u := last.Usage; u.Prompt == 0 || u.Completion == 0 || u.Requests != want.requests ||
			u.Reported == (fault == openaitest.NoUsage || fault == openaitest.NoStreamOptions && !whole) {
			t.Errorf("usage %+v", u)
		}
		return
	}
	checkError(t, err, want)
	if last.Finish != "" || last.Text != "" || last.Usage.Requests != want.requests || last.Usage.Reported && !whole {
		t.Errorf("the piece beside the error is %+v", last)
	}
	if (text != "") != want.partial {
		t.Errorf("got the text %q", text)
	}
	if fault != openaitest.HugeText && !strings.HasPrefix(replyText, text) {
		t.Errorf("the text %q is not a beginning of the reply", text)
	}
}

// vectorFault plays one fault to the second call for vectors; the first learns
// the dimensions.
func vectorFault(t *testing.T, o openai.Options, h *openaitest.Handler, fault openaitest.Fault, want outcome) {
	embedder, err := openai.NewEmbedder(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer embedder.Close()
	h.Embed = func(openaitest.Request) openaitest.Reply {
		return openaitest.Reply{Fault: fault, Location: o.BaseURL + "/elsewhere"}
	}
	texts := []string{canaryPrompt, "noon", "high water", ""}
	rows, err := embedder.Embed(t.Context(), texts)
	exchanges := h.Exchanges()
	if got := len(exchanges) - 1; got != want.requests {
		t.Errorf("%d requests, want %d", got, want.requests)
	}
	for _, x := range exchanges {
		if x.Role != "embed" {
			t.Errorf("request for role %q", x.Role)
		}
	}
	if want.kind != "" {
		if rows != nil {
			t.Errorf("%d rows beside an error", len(rows))
		}
		checkError(t, err, want)
		return
	}
	if err != nil || len(rows) != len(texts) {
		t.Fatalf("%d rows, error %v", len(rows), err)
	}
	for i, text := range texts {
		for d, c := range openaitest.Vector(text, 64) {
			if diff := rows[i][d] - c; diff > 1e-6 || diff < -1e-6 {
				t.Errorf("the row of %q is another's", text)
				break
			}
		}
	}
}

// scoreFault plays one fault to a reranker.
func scoreFault(t *testing.T, o openai.Options, h *openaitest.Handler, fault openaitest.Fault, want outcome) {
	reranker, err := openai.NewReranker(o)
	if err != nil {
		t.Fatal(err)
	}
	defer reranker.Close()
	h.Rerank = func(openaitest.Request) openaitest.Reply {
		return openaitest.Reply{Fault: fault, Location: o.BaseURL + "/elsewhere"}
	}
	texts := []string{canaryPrompt, "noon", "high water", ""}
	scores, err := reranker.Rerank(t.Context(), "When is high water?", texts)
	exchanges := h.Exchanges()
	if len(exchanges) != want.requests {
		t.Errorf("%d requests, want %d", len(exchanges), want.requests)
	}
	for _, x := range exchanges {
		if x.Role != "rerank" || !strings.HasSuffix(x.Path, "/v1/rerank") || x.Query != "When is high water?" {
			t.Errorf("request for role %q to %s about %q", x.Role, x.Path, x.Query)
		}
	}
	if want.kind != "" {
		if scores != nil {
			t.Errorf("%d scores beside an error", len(scores))
		}
		checkError(t, err, want)
		return
	}
	if err != nil || len(scores) != len(texts) {
		t.Fatalf("%d scores, error %v", len(scores), err)
	}
	for i, text := range texts {
		if scores[i] != openaitest.Score("When is high water?", text) {
			t.Errorf("the score of %q is another's", text)
		}
	}
}

// An endpoint is a way of calling the server, with what becomes of each fault.
type endpoint struct {
	play   func(*testing.T, openai.Options, *openaitest.Handler, openaitest.Fault, outcome)
	faults map[openaitest.Fault]outcome
}

func endpoints() map[string]endpoint {
	return map[string]endpoint{
		"chat":    {chatFault, merged(ofChat)},
		"whole":   {wholeFault, merged(ofWhole)},
		"vectors": {vectorFault, merged(ofVectors)},
		"scores":  {scoreFault, merged(ofScores)},
	}
}

// TestFaults plays every fault, with the time limits and waits of real use,
// over HTTP in memory.
func TestFaults(t *testing.T) {
	for name, c := range endpoints() {
		for fault, want := range c.faults {
			t.Run(name+"/"+string(fault), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := &openaitest.Handler{Huge: 8 << 20}
					start := time.Now()
					c.play(t, openai.Options{
						BaseURL: openaitest.PipeURL, Key: canaryKey, Model: "m", Transport: openaitest.Pipe(t, h),
					}, h, fault, want)
					if took := time.Since(start); took > 75*time.Second {
						t.Errorf("it took %s", took)
					}
				})
			})
		}
	}
}

// TestFaultsTCP plays the faults that are not about time over loopback TCP,
// and those that are without repetition where they end by themselves.
func TestFaultsTCP(t *testing.T) {
	for name, c := range endpoints() {
		for fault, want := range c.faults {
			if want.timely {
				if want.kind == openai.TimedOut {
					continue // shown by TestFaults
				}
				want.requests = 1
			}
			t.Run(name+"/"+string(fault), func(t *testing.T) {
				defer goleak.VerifyNone(t)
				h := &openaitest.Handler{Huge: 8 << 20}
				s := httptest.NewServer(h)
				defer s.Close()
				o := openai.Options{BaseURL: s.URL + "/v1", Key: canaryKey, Model: "m"}
				if want.timely {
					o.Retries = -1
				}
				c.play(t, o, h, fault, want)
			})
		}
	}
}
