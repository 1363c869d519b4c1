package chat_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/quire-ai/quire/internal/chat"
)

// A template is parsed once and rendered for each conversation.
func ExampleTemplate_RenderConversation() {
	t, err := chat.Parse(`{% for m in messages %}<|{{ m.role }}|>
{{ m.content }}
{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}`)
	if err != nil {
		panic(err)
	}
	messages, err := chat.FromJSON([]byte(`[{"role": "user", "content": "Hello!"}]`))
	if err != nil {
		panic(err)
	}
	c := &chat.Conversation{Messages: messages, AddGenerationPrompt: true}
	text, err := t.RenderConversation(context.Background(), c, chat.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(text)
	// Output:
	// <|user|>
	// Hello!
	// <|assistant|>
}

// What a template says with raise_exception is meant for the person who sent the conversation.
func ExampleTemplateError() {
	t, err := chat.Parse(`{% if not messages %}{{ raise_exception('Send at least one message.') }}{% endif %}`)
	if err != nil {
		panic(err)
	}
	_, err = t.RenderConversation(context.Background(), &chat.Conversation{}, chat.Options{})
	var refused *chat.TemplateError
	if errors.As(err, &refused) {
		fmt.Println(refused.Message)
	}
	// Output: Send at least one message.
}
