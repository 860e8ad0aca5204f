// SentencePiece models (tokenizer.model), BPE and unigram, read without that library: Debian's
// brings a protobuf of its own whose symbols meet those of PyTorch's.
//
// Known: models that leave the text as it is ("identity", as Llama's and Gemma's are) and byte
// fallback. A model that normalizes characters is refused.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "train/data/tokenizer.h"

namespace ezpz::train {

Result<std::unique_ptr<Tokenizer>> parse_sentencepiece(std::string_view model,
                                                       const std::string& where);
Result<std::unique_ptr<Tokenizer>> open_sentencepiece(const std::string& path);

}  // namespace ezpz::train
