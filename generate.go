package quire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/quire-ai/quire/internal/chat"
	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/sample"
	"github.com/quire-ai/quire/internal/tokenizer"
)

// Request is what to generate. The zero value of each field but Prompt means what is said there; all zero is greedy, until
// the model ends its answer.
type Request struct {
	// Prompt is the text to go on from. Chat ignores it.
	Prompt string
	// Tokens are the prompt as tokens, instead of Prompt.
	Tokens []int32

	// MaxTokens is the most tokens to generate; 0 means as many as there is room for.
	MaxTokens int
	// MinTokens is the number of tokens before which neither the model nor StopTokens end the answer.
	MinTokens int
	// Stop are texts that end the answer; they are not part of it.
	Stop []string
	// StopTokens are tokens that end the answer.
	StopTokens []int32
	// IgnoreEOS goes on where the model would end.
	IgnoreEOS bool

	// Temperature divides the logits, up to 2; 0 always takes the most probable token.
	Temperature float64
	// TopK keeps the k most probable tokens; 0 keeps all.
	TopK int
	// TopP keeps the most probable tokens that reach this probability together; 0 keeps all.
	TopP float64
	// MinP drops tokens less probable than MinP times the most probable one; 0 keeps all.
	MinP float64
	// RepetitionPenalty, above 1, makes tokens of prompt and output less probable; 0 means 1, which is off.
	RepetitionPenalty float64
	// PresencePenalty and FrequencyPenalty, up to 2, make tokens of the output less probable, once or by their count.
	PresencePenalty, FrequencyPenalty float64
	// LogitBias is added to the logits of its tokens.
	LogitBias map[int32]float32
	// Seed keys the random numbers: the same request with the same seed gives the same text.
	Seed uint64
	// Logprobs fills in Token.Logprob.
	Logprobs bool

	// CacheSalt separates what requests share: those with different salts share no part of the KV cache.
	CacheSalt string
}

// Token is a generated token and the text that is complete with it.
type Token struct {
	// ID is the token, -1 if the end came without one.
	ID int32
	// Text may be empty: a character may need several tokens, and text that may become a stop text waits until it is
	// decided. Joined, the texts are the answer.
	Text string
	// Logprob is the natural logarithm of the model's probability of the token, if Request.Logprobs asked for it.
	Logprob float32
	// Finish is not nil in the last one.
	Finish *Finish
}

// Finish says how an answer ended and what it took.
type Finish struct {
	// Reason is "stop" if the model, a stop token or a stop text ended the answer, "length" if MaxTokens or the room did,
	// "abort" if its context did.
	Reason string
	// StopText is the stop text that ended the answer, if one did.
	StopText string

	PromptTokens int
	CachedTokens int // of the prompt, found in the KV cache
	OutputTokens int
}

// Message is one turn of a conversation.
type Message struct {
	Role    string // "system", "user" or "assistant"
	Content string
}

// Generate goes on from a prompt. It yields tokens as they come; an error, if any, is the last value.
func (e *Engine) Generate(ctx context.Context, r Request) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		prompt := r.Tokens
		if prompt == nil {
			prompt = e.Tokenize(r.Prompt)
		}
		e.run(ctx, prompt, r, yield)
	}
}

// Chat answers a conversation, by the model's own chat template. It yields tokens as Generate does.
func (e *Engine) Chat(ctx context.Context, messages []Message, r Request) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		text, err := e.render(ctx, messages)
		if err != nil {
			yield(Token{ID: -1}, fmt.Errorf("chat with %s: %w", e.model.Name, err))
			return
		}
		e.run(ctx, e.model.Tokenizer.Encode(text, tokenizer.Options{ParseSpecial: true}), r, yield)
	}
}

// render turns a conversation into the text the model was trained on.
func (e *Engine) render(ctx context.Context, messages []Message) (string, error) {
	m := e.model
	if m.Template == nil {
		if m.TemplateErr != nil {
			return "", m.TemplateErr
		}
		return "", errors.New("the model has no chat template")
	}
	list := &chat.List{}
	for _, msg := range messages {
		d := &chat.Dict{}
		d.Set("role", chat.Str(msg.Role))
		d.Set("content", chat.Str(msg.Content))
		list.Items = append(list.Items, d)
	}
	return m.Template.RenderConversation(ctx, &chat.Conversation{
		Messages: list, AddGenerationPrompt: true, Special: m.SpecialTokens,
	}, chat.Options{Now: time.Now()})
}

// run submits a request and yields its text. Whatever ends it early aborts the request.
func (e *Engine) run(ctx context.Context, prompt []int32, r Request, yield func(Token, error) bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h, err := e.model.Engine.Submit(ctx, &engine.Request{
		Prompt: prompt, MaxTokens: r.MaxTokens, MinTokens: r.MinTokens,
		EOS: e.model.Tokenizer.EOG(), IgnoreEOS: r.IgnoreEOS, StopTokenIDs: r.StopTokens,
		CacheSalt: r.CacheSalt, Sampling: r.sampling(),
	})
	if err != nil {
		yield(Token{ID: -1}, err)
		return
	}
	text := engine.NewTextStream(h, e.model.Tokenizer.NewDetokenizer(true), engine.TextOptions{Stop: r.Stop, MinTokens: r.MinTokens})
	for {
		d, err := text.Next(ctx)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			yield(Token{ID: -1}, err)
			return
		}
		if !yield(token(d), nil) {
			return
		}
	}
}

// sampling gives the zero values of a Request their meaning.
func (r *Request) sampling() sample.Params {
	p := sample.Default()
	p.Temperature, p.TopK, p.MinP = r.Temperature, r.TopK, r.MinP
	p.PresencePenalty, p.FrequencyPenalty = r.PresencePenalty, r.FrequencyPenalty
	p.LogitBias, p.Seed = r.LogitBias, r.Seed
	if r.TopP != 0 {
		p.TopP = r.TopP
	}
	if r.RepetitionPenalty != 0 {
		p.RepetitionPenalty = r.RepetitionPenalty
	}
	if r.Logprobs {
		p.Logprobs = 0
	}
	return p
}

func token(d engine.Delta) Token {
	t := Token{ID: -1, Text: d.Text}
	if d.Token != nil {
		t.ID, t.Logprob = d.Token.ID, d.Token.Logprob
	}
	if f := d.Finish; f != nil {
		t.Finish = &Finish{
			Reason: f.Reason.String(), StopText: f.StopString,
			PromptTokens: f.PromptTokens, CachedTokens: f.CachedTokens, OutputTokens: f.OutputTokens,
		}
	}
	return t
}
