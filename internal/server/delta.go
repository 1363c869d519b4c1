package server

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/openai"
	"github.com/quire-ai/quire/internal/sample"
)

// delta turns a piece of the engine's text into what the API says about it.
func (s *Server) delta(j *job, c *choice, d engine.Delta) openai.Delta {
	out := openai.Delta{Index: c.index, Text: d.Text}
	first := !c.begun
	c.begun = true
	if d.Token != nil && !j.promptOnly {
		c.tokens++
	}
	if first && j.common.ReturnTokenIDs {
		out.PromptTokenIDs = c.prompt.ids
	}
	if j.promptOnly {
		out.Text = ""
	}
	if first && j.common.Echo {
		out.Text = j.echoed(c) + out.Text
		if j.logprobs && j.header.Kind == openai.Text {
			out.Logprobs = s.echoLogprobs(j, c)
		}
	}
	if d.Token != nil && !j.promptOnly {
		if j.logprobs {
			offset := d.Offset
			if j.common.Echo {
				offset += utf8.RuneCountInString(j.echoed(c))
			}
			out.Logprobs = append(out.Logprobs, s.logprob(j, *d.Token, offset))
		}
		if j.common.ReturnTokenIDs {
			out.TokenIDs = []int32{d.Token.ID}
		}
	}
	if f := d.Finish; f != nil {
		out.FinishReason = f.Reason.String()
		out.StopReason = openai.StopReason{Text: f.StopString}
		if f.StopToken != nil {
			out.StopReason = openai.StopReason{Token: *f.StopToken, ByToken: true}
		}
	}
	return out
}

// echoed is what a request with echo shows before the answer: the prompt of a text, the last message of a chat.
func (j *job) echoed(c *choice) string {
	if j.header.Kind == openai.Chat {
		return j.echo
	}
	return c.prompt.text
}

// logprob describes a token and its rivals. In the text form the token itself is always among them.
func (s *Server) logprob(j *job, t sample.Token, offset int) openai.TokenLogprob {
	out := openai.TokenLogprob{Token: s.tokenName(j, t.ID), Bytes: s.model.Tokenizer.Piece(t.ID), Logprob: t.Logprob, Offset: offset}
	out.Top = make([]openai.TopLogprob, 0, len(t.Top)+1)
	if j.header.Kind == openai.Text && !contains(t.Top, t.ID) {
		out.Top = append(out.Top, openai.TopLogprob{Token: out.Token, Bytes: out.Bytes, Logprob: t.Logprob})
	}
	for _, r := range t.Top {
		out.Top = append(out.Top, openai.TopLogprob{Token: s.tokenName(j, r.ID), Bytes: s.model.Tokenizer.Piece(r.ID), Logprob: r.Logprob})
	}
	return out
}

func contains(top []sample.TokenLogprob, id int32) bool {
	for _, t := range top {
		if t.ID == id {
			return true
		}
	}
	return false
}

// tokenName is how log probabilities name a token: by its text, bytes that are no character as U+FFFD, or by its id if the
// request wants that.
func (s *Server) tokenName(j *job, id int32) string {
	if j.common.ReturnTokensAsTokenIDs {
		return "token_id:" + strconv.Itoa(int(id))
	}
	return strings.ToValidUTF8(string(s.model.Tokenizer.Piece(id)), "\ufffd")
}

// echoLogprobs describes the tokens of an echoed prompt. Nothing predicts the first.
func (s *Server) echoLogprobs(j *job, c *choice) []openai.TokenLogprob {
	scored := c.handle.PromptLogprobs()
	out := make([]openai.TokenLogprob, 0, len(c.prompt.ids))
	text, offset := s.model.Tokenizer.NewDetokenizer(false), 0
	for i, id := range c.prompt.ids {
		if i == 0 || i > len(scored) {
			out = append(out, openai.TokenLogprob{Token: s.tokenName(j, id), Absent: true, Offset: offset})
		} else {
			out = append(out, s.logprob(j, scored[i-1], offset))
		}
		offset += utf8.RuneCountInString(text.Push(id))
	}
	return out
}

// promptLogprobs describes the tokens of a prompt in vLLM's own form.
func (s *Server) promptLogprobs(j *job, c *choice) openai.PromptLogprobs {
	scored := c.handle.PromptLogprobs()
	out := make(openai.PromptLogprobs, 1, len(scored)+1)
	for _, t := range scored {
		position := make([]openai.PromptLogprob, 0, len(t.Top)+1)
		position = append(position, openai.PromptLogprob{ID: t.ID, Token: s.tokenName(j, t.ID), Logprob: t.Logprob, Rank: t.Rank})
		for i, r := range t.Top {
			position = append(position, openai.PromptLogprob{ID: r.ID, Token: s.tokenName(j, r.ID), Logprob: r.Logprob, Rank: i + 1})
		}
		out = append(out, position)
	}
	return out
}
