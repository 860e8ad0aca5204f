// The trainer's names of a Llama's tensors, and Hugging Face's.
//
//   trainer               Hugging Face                                      shape
//   embed                 model.embed_tokens.weight                         [vocab, dim]
//   layers.N.attn_norm    model.layers.N.input_layernorm.weight             [dim]
//   layers.N.wq           model.layers.N.self_attn.q_proj.weight            [heads * head_dim, dim]
//   layers.N.wk           model.layers.N.self_attn.k_proj.weight            [kv_heads * head_dim,
//   dim] layers.N.wv           model.layers.N.self_attn.v_proj.weight            [kv_heads *
//   head_dim, dim] layers.N.wo           model.layers.N.self_attn.o_proj.weight            [dim,
//   heads * head_dim] layers.N.ffn_norm     model.layers.N.post_attention_layernorm.weight    [dim]
//   layers.N.w1           model.layers.N.mlp.gate_proj.weight               [hidden, dim]
//   layers.N.w2           model.layers.N.mlp.down_proj.weight               [dim, hidden]
//   layers.N.w3           model.layers.N.mlp.up_proj.weight                 [hidden, dim]
//   norm                  model.norm.weight                                 [dim]
//   output                lm_head.weight                                    [vocab, dim]; none when
//   tied
//
// All matrices are [out, in], row-major, and are taken over as they are: the trainer rotates a
// head's dimension i together with i + head_dim / 2 (Hugging Face's "rotate half"), so wq and wk
// need no permutation. (Meta's own checkpoints pair 2i with 2i + 1; theirs would need one.)
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/weights/hf_config.h"
#include "train/weights/safetensors.h"

namespace ezpz::train {

std::optional<std::string> hf_name(std::string_view trainer_name);
std::optional<std::string> trainer_name(std::string_view hf_name);

// Every tensor of such a model under the trainer's name, from the input to the output.
std::vector<TensorSpec> model_tensors(const HfConfig&, DType dtype);

}  // namespace ezpz::train
