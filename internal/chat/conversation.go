package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Conversation is what a chat template is rendered with: the arguments of transformers' apply_chat_template.
type Conversation struct {
	Messages  Value // a *List of *Dict
	Tools     Value // a *List, or nil for none
	Documents Value // a *List, or nil for none

	AddGenerationPrompt bool
	// ContinueFinalMessage ends the text with the last message as it is, for the model to go on with.
	ContinueFinalMessage bool

	// Special are the special tokens by the name the template knows them by: bos_token, eos_token and so on.
	Special map[string]string
	// Extra are further variables for the template, such as enable_thinking. They override those above.
	Extra *Dict
}

// variables are the template's variables.
func (c *Conversation) variables() *Dict {
	orNone := func(v Value) Value {
		if v == nil {
			return None{}
		}
		return v
	}
	vars := &Dict{}
	for name, token := range c.Special {
		vars.Set(name, Str(token))
	}
	vars.Set("messages", orNone(c.Messages))
	vars.Set("tools", orNone(c.Tools))
	vars.Set("documents", orNone(c.Documents))
	vars.Set("add_generation_prompt", Bool(c.AddGenerationPrompt))
	if c.Extra != nil {
		for k, v := range c.Extra.All {
			name, _ := asString(k)
			vars.Set(name, v)
		}
	}
	return vars
}

// RenderConversation renders a conversation. Its errors are those of [Template.Render], and others when the final
// message cannot be continued.
func (t *Template) RenderConversation(ctx context.Context, c *Conversation, o Options) (string, error) {
	if c.ContinueFinalMessage && c.AddGenerationPrompt {
		return "", errors.New("continue_final_message and add_generation_prompt exclude each other")
	}
	text, err := t.Render(ctx, c.variables(), o)
	if err != nil || !c.ContinueFinalMessage {
		return text, err
	}
	final, err := finalText(c.Messages)
	if err != nil {
		return "", fmt.Errorf("continue final message: %w", err)
	}
	return cutAfter(text, final)
}

// finalText is the text of the last message.
func finalText(messages Value) (string, error) {
	list, _ := messages.(*List)
	if list == nil || len(list.Items) == 0 {
		return "", errors.New("there are no messages")
	}
	last, _ := list.Items[len(list.Items)-1].(*Dict)
	if last == nil {
		return "", errors.New("the last message is not an object")
	}
	content, _ := last.Get("content")
	if s, ok := asString(content); ok {
		return s, nil
	}
	if parts, ok := content.(*List); ok {
		for i := len(parts.Items) - 1; i >= 0; i-- {
			if part, ok := parts.Items[i].(*Dict); ok {
				if text, ok := part.Get("text"); ok {
					s, _ := asString(text)
					return s, nil
				}
			}
		}
	}
	return "", errors.New("the last message has no text")
}

// cutAfter is text up to the end of final, whose spaces at the end the template may have trimmed.
func cutAfter(text, final string) (string, error) {
	trimmed := strings.TrimFunc(final, isSpace)
	at := strings.LastIndex(text, trimmed)
	if at < 0 {
		return "", errors.New("continue final message: the template does not show the last message as it is")
	}
	if whole := strings.TrimLeftFunc(final, isSpace); strings.HasPrefix(text[at:], whole) && whole == final {
		return text[:at+len(whole)], nil
	}
	return text[:at+len(trimmed)], nil
}
