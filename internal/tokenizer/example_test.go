package tokenizer_test

import (
	"fmt"
	"log"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/tokenizer"
)

func ExampleFromGGUF() {
	f, err := gguf.Open("testdata/tiny.gguf")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	tok, err := tokenizer.FromGGUF(&f.Metadata)
	if err != nil {
		log.Fatal(err)
	}
	ids := tok.Encode("then<|im_end|>", tokenizer.Options{ParseSpecial: true})
	fmt.Println(ids)
	fmt.Printf("%q %q\n", tok.Decode(ids, false), tok.Decode(ids, true))
	// Output:
	// [116 257 110 287]
	// "then<|im_end|>" "then"
}

func ExampleDetokenizer() {
	f, err := gguf.Open("testdata/tiny.gguf")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	tok, err := tokenizer.FromGGUF(&f.Metadata)
	if err != nil {
		log.Fatal(err)
	}
	d := tok.NewDetokenizer(true)
	for _, id := range []int32{'o', 'k', 0xe2, 0x82, 0xac, 0xe2} { // the tokens of single bytes
		fmt.Printf("%q ", d.Push(id))
	}
	fmt.Printf("%q\n", d.Flush())
	// Output:
	// "o" "k" "" "" "€" "" "�"
}
