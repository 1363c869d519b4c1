package openai

import "time"

// Kind is the form of an answer.
type Kind int

// The two forms: POST /v1/completions answers with text, POST /v1/chat/completions with messages.
const (
	Text Kind = iota
	Chat
)

// Header is what an answer and each frame of its stream begin with.
type Header struct {
	Kind    Kind
	ID      string // "cmpl-…" or "chatcmpl-…"
	Model   string // as served
	Created time.Time
}

// Response is a whole answer.
type Response struct {
	Header
	Choices        []Choice
	Usage          Usage
	PromptLogprobs PromptLogprobs // of a chat; a text has them with each choice
	PromptTokenIDs []int32        // of a chat; nil when not asked for
	PromptText     *string        // of a chat; nil when not asked for
}

// Choice is one answer of a Response, complete.
type Choice struct {
	Index        int
	Text         string
	Logprobs     []TokenLogprob // nil when not asked for
	FinishReason string         // stop, length, abort or cache_threshold
	StopReason   StopReason
	TokenIDs     []int32 // nil when not asked for

	PromptLogprobs PromptLogprobs // of a text
	PromptTokenIDs []int32        // of a text; nil when not asked for
}

// Delta is what one frame of a stream adds to a choice.
type Delta struct {
	Index        int
	Role         string // of a chat's first frame
	Text         string
	Logprobs     []TokenLogprob
	FinishReason string // "" while the choice goes on
	StopReason   StopReason
	TokenIDs     []int32

	PromptTokenIDs []int32 // with the first frame, when asked for
}

// StopReason says what ended a choice beside the model's own end: a stop string, a stop token, or neither.
type StopReason struct {
	Text  string // the stop string, "" when none
	Token int32  // the stop token, meaningful when ByToken
	// ByToken is set when one of stop_token_ids ended the choice.
	ByToken bool
}

// TokenLogprob is one token with its logarithmic probability and those of its rivals.
type TokenLogprob struct {
	Token   string  // as text; bytes that are no character become U+FFFD
	Bytes   []byte  // the token's bytes
	Logprob float32 // natural logarithm
	Absent  bool    // there is none: the first token of an echoed prompt
	Offset  int     // characters before it in the text of the choice
	Top     []TopLogprob
}

// TopLogprob is one of the likeliest tokens at a position.
type TopLogprob struct {
	Token   string
	Bytes   []byte
	Logprob float32
}

// PromptLogprobs holds an entry for each token of the prompt; the first, which nothing predicts, is empty. nil when not
// asked for.
type PromptLogprobs [][]PromptLogprob

// PromptLogprob is one candidate at a position of the prompt; the token that stands there comes first.
type PromptLogprob struct {
	ID      int32
	Token   string
	Logprob float32
	Rank    int // 1 is the likeliest
}

// Usage counts the tokens of a request.
type Usage struct {
	PromptTokens     int
	CompletionTokens int
	CachedTokens     int // prompt tokens found in the prefix cache and the tiers behind it
}

// Error is what went wrong, as it is sent.
type Error struct {
	Message string
	Type    string // BadRequestError, NotFoundError …
	Param   string // the field, "" for none
	Code    int    // the HTTP status
}

// ModelCard describes one served model.
type ModelCard struct {
	ID          string
	Created     time.Time
	Root        string // the file
	MaxModelLen int    // tokens
}
