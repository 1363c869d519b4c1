package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// The functions of this file append JSON to a byte slice. Each writes one value, and members are written in vLLM's order.

// appendString appends s as a JSON string. What is not UTF-8 becomes U+FFFD.
func appendString[S ~string | ~[]byte](b []byte, s S) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error reports invalid UTF-8, which has been replaced
	return b
}

// appendStringOrNull appends null for the empty string.
func appendStringOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendString(b, s)
}

// appendLogprob appends a logarithmic probability. JSON has no infinity; vLLM and OpenAI write -9999 for "never".
func appendLogprob(b []byte, p float32) []byte {
	if !(p > -9999) { // also NaN
		p = -9999
	}
	return strconv.AppendFloat(b, float64(p), 'g', -1, 32)
}

// appendIDs appends a list of token ids, or null.
func appendIDs(b []byte, ids []int32) []byte {
	if ids == nil {
		return append(b, "null"...)
	}
	return appendList(b, ids, func(b []byte, id int32) []byte { return strconv.AppendInt(b, int64(id), 10) })
}

// appendList appends a list, each element by one call of element.
func appendList[E any](b []byte, list []E, element func([]byte, E) []byte) []byte {
	b = append(b, '[')
	for i, e := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = element(b, e)
	}
	return append(b, ']')
}

// appendHeader appends the members that every answer begins with, and the opening brace.
func (h *Header) appendHeader(b []byte, frame bool) []byte {
	object := "text_completion"
	switch {
	case h.Kind == Chat && frame:
		object = "chat.completion.chunk"
	case h.Kind == Chat:
		object = "chat.completion"
	}
	b = append(b, `{"id":`...)
	b = appendString(b, h.ID)
	b = append(b, `,"object":"`...)
	b = append(b, object...)
	b = append(b, `","created":`...)
	b = strconv.AppendInt(b, h.Created.Unix(), 10)
	b = append(b, `,"model":`...)
	return appendString(b, h.Model)
}

// Append appends the whole answer.
func (r *Response) Append(b []byte) []byte {
	b = r.appendHeader(b, false)
	b = append(b, `,"choices":`...)
	b = appendList(b, r.Choices, func(b []byte, c Choice) []byte {
		if r.Kind == Chat {
			return c.appendChat(b)
		}
		return c.appendText(b)
	})
	b = append(b, `,"service_tier":null,"system_fingerprint":null,"usage":`...)
	b = r.Usage.append(b)
	if r.Kind == Chat {
		b = append(b, `,"prompt_logprobs":`...)
		b = r.PromptLogprobs.append(b)
		b = append(b, `,"prompt_token_ids":`...)
		b = appendIDs(b, r.PromptTokenIDs)
		b = append(b, `,"prompt_text":`...)
		if r.PromptText != nil {
			b = appendString(b, *r.PromptText)
		} else {
			b = append(b, "null"...)
		}
	}
	return append(b, `,"kv_transfer_params":null}`...)
}

// appendChat appends the choice as a message.
func (c Choice) appendChat(b []byte) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, int64(c.Index), 10)
	b = append(b, `,"message":{"role":"assistant","content":`...)
	b = appendString(b, c.Text)
	b = append(b, `,"refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null},"logprobs":`...)
	b = appendLogprobs(b, Chat, c.Logprobs)
	b = appendFinish(b, c.FinishReason, c.StopReason)
	b = append(b, `,"token_ids":`...)
	b = appendIDs(b, c.TokenIDs)
	return append(b, '}')
}

// appendText appends the choice as a text.
func (c Choice) appendText(b []byte) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, int64(c.Index), 10)
	b = append(b, `,"text":`...)
	b = appendString(b, c.Text)
	b = append(b, `,"logprobs":`...)
	b = appendLogprobs(b, Text, c.Logprobs)
	b = appendFinish(b, c.FinishReason, c.StopReason)
	b = append(b, `,"token_ids":`...)
	b = appendIDs(b, c.TokenIDs)
	b = append(b, `,"prompt_logprobs":`...)
	b = c.PromptLogprobs.append(b)
	b = append(b, `,"prompt_token_ids":`...)
	b = appendIDs(b, c.PromptTokenIDs)
	return append(b, '}')
}

// appendFinish appends why a choice ended.
func appendFinish(b []byte, reason string, stop StopReason) []byte {
	b = append(b, `,"finish_reason":`...)
	b = appendStringOrNull(b, reason)
	b = append(b, `,"stop_reason":`...)
	if stop.ByToken {
		return strconv.AppendInt(b, int64(stop.Token), 10)
	}
	return appendStringOrNull(b, stop.Text)
}

// appendLogprobs appends the log probabilities of a choice or a delta, or null when there are none.
func appendLogprobs(b []byte, kind Kind, tokens []TokenLogprob) []byte {
	switch {
	case tokens == nil:
		return append(b, "null"...)
	case kind == Chat:
		b = append(b, `{"content":`...)
		b = appendList(b, tokens, func(b []byte, t TokenLogprob) []byte { return t.appendChat(b) })
		return append(b, '}')
	}
	b = append(b, `{"text_offset":`...)
	b = appendList(b, tokens, func(b []byte, t TokenLogprob) []byte { return strconv.AppendInt(b, int64(t.Offset), 10) })
	b = append(b, `,"token_logprobs":`...)
	b = appendList(b, tokens, func(b []byte, t TokenLogprob) []byte {
		if t.Absent {
			return append(b, "null"...)
		}
		return appendLogprob(b, t.Logprob)
	})
	b = append(b, `,"tokens":`...)
	b = appendList(b, tokens, func(b []byte, t TokenLogprob) []byte { return appendString(b, t.Token) })
	b = append(b, `,"top_logprobs":`...)
	b = appendList(b, tokens, func(b []byte, t TokenLogprob) []byte { return t.appendTopText(b) })
	return append(b, '}')
}

// appendChat appends a token as OpenAI's chat form has it.
func (t TokenLogprob) appendChat(b []byte) []byte {
	b = appendCandidate(b, t.Token, t.Logprob, t.Bytes)
	b = append(b, `,"top_logprobs":`...)
	b = appendList(b, t.Top, func(b []byte, c TopLogprob) []byte {
		return append(appendCandidate(b, c.Token, c.Logprob, c.Bytes), '}')
	})
	return append(b, '}')
}

// appendCandidate appends a token with its bytes and leaves the object open.
func appendCandidate(b []byte, token string, logprob float32, raw []byte) []byte {
	b = append(b, `{"token":`...)
	b = appendString(b, token)
	b = append(b, `,"logprob":`...)
	b = appendLogprob(b, logprob)
	b = append(b, `,"bytes":`...)
	return appendList(b, raw, func(b []byte, c byte) []byte { return strconv.AppendUint(b, uint64(c), 10) })
}

// appendTopText appends the candidates of a position as the text form has them: an object from token to probability.
// Tokens that look the same, such as two halves of a character, appear once, with the likeliest.
func (t TokenLogprob) appendTopText(b []byte) []byte {
	if t.Absent {
		return append(b, "null"...)
	}
	b = append(b, '{')
	for i, c := range t.Top {
		if slices.ContainsFunc(t.Top[:i], func(o TopLogprob) bool { return o.Token == c.Token }) {
			continue
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, c.Token)
		b = append(b, ':')
		b = appendLogprob(b, c.Logprob)
	}
	return append(b, '}')
}

// append appends the candidates of each position of the prompt: an object from token id to what is known of it.
func (p PromptLogprobs) append(b []byte) []byte {
	if p == nil {
		return append(b, "null"...)
	}
	return appendList(b, p, func(b []byte, position []PromptLogprob) []byte {
		if len(position) == 0 {
			return append(b, "null"...)
		}
		b = append(b, '{')
		for i, c := range position {
			if slices.ContainsFunc(position[:i], func(o PromptLogprob) bool { return o.ID == c.ID }) {
				continue // the token itself is also among the likeliest
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, '"')
			b = strconv.AppendInt(b, int64(c.ID), 10)
			b = append(b, `":{"logprob":`...)
			b = appendLogprob(b, c.Logprob)
			b = append(b, `,"rank":`...)
			b = strconv.AppendInt(b, int64(c.Rank), 10)
			b = append(b, `,"decoded_token":`...)
			b = appendString(b, c.Token)
			b = append(b, '}')
		}
		return append(b, '}')
	})
}

// append appends the counts.
func (u Usage) append(b []byte) []byte {
	b = append(b, `{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(u.PromptTokens), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(u.PromptTokens+u.CompletionTokens), 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(u.CompletionTokens), 10)
	b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(u.CachedTokens), 10)
	return append(b, "}}"...)
}

// Append appends the error in its envelope.
func (e *Error) Append(b []byte) []byte {
	b = append(b, `{"error":{"message":`...)
	b = appendString(b, e.Message)
	b = append(b, `,"type":`...)
	b = appendString(b, e.Type)
	b = append(b, `,"param":`...)
	b = appendStringOrNull(b, e.Param)
	b = append(b, `,"code":`...)
	b = strconv.AppendInt(b, int64(e.Code), 10)
	return append(b, "}}"...)
}

// Append appends the card as GET /v1/models/{id} shows it.
func (m ModelCard) Append(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = appendString(b, m.ID)
	b = append(b, `,"object":"model","created":`...)
	b = strconv.AppendInt(b, m.Created.Unix(), 10)
	b = append(b, `,"owned_by":"quire","root":`...)
	b = appendString(b, m.Root)
	b = append(b, `,"parent":null,"max_model_len":`...)
	b = strconv.AppendInt(b, int64(m.MaxModelLen), 10)
	b = append(b, `,"permission":[{"id":"modelperm-`...)
	b = append(b, modelDigest(m.ID)...)
	b = append(b, `","object":"model_permission","created":`...)
	b = strconv.AppendInt(b, m.Created.Unix(), 10)
	b = append(b, `,"allow_create_engine":false,"allow_sampling":true,"allow_logprobs":true,"allow_search_indices":false,`...)
	return append(b, `"allow_view":true,"allow_fine_tuning":false,"organization":"*","group":null,"is_blocking":false}]}`...)
}

// modelDigest is the part of a permission's id that tells models apart.
func modelDigest(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}

// AppendModels appends the list as GET /v1/models shows it.
func AppendModels(b []byte, cards []ModelCard) []byte {
	b = append(b, `{"object":"list","data":`...)
	b = appendList(b, cards, func(b []byte, m ModelCard) []byte { return m.Append(b) })
	return append(b, '}')
}
