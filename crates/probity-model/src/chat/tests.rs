use super::*;

fn template(text: &str) -> Result<ChatTemplate, ChatError> {
    ChatTemplate::of(&Header {
        architecture: "llama".to_owned(),
        name: None,
        context: None,
        chat_template: Some(text.to_owned()),
        bos: Some("<s>".to_owned()),
        eos: Some("</s>".to_owned()),
        tensors: 0,
        bytes: 0,
    })
}

fn rendered(text: &str, messages: &[(&str, &str)]) -> Result<String, String> {
    let messages: Vec<_> =
        messages.iter().map(|(role, content)| ChatMessage { role, content }).collect();
    template(text).and_then(|it| it.render(&messages)).map_err(|it| it.to_string())
}

/// In the manner of `ChatML`, with a default for the instructions.
const CHATML: &str = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are helpful<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}";

#[test]
fn a_conversation_becomes_the_text_that_the_file_asks_for() {
    let text = rendered(CHATML, &[("user", "Hi")]).unwrap();
    assert_eq!(
        text,
        "<|im_start|>system\nYou are helpful<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    );
    let text = rendered(CHATML, &[("system", "Be brief"), ("user", "Hi")]).unwrap();
    assert!(
        text.starts_with("<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\n"),
        "{text}"
    );
}

#[test]
fn methods_of_python_macros_and_namespaces_work() {
    let text =
        "{%- macro say(m) -%}[{{ m.role | upper }}] {{ m['content'].strip() }}{%- endmacro -%}
{{- bos_token }}{% set ns = namespace(n=0) %}
{% for m in messages %}
    {% if m.content.startswith('skip') %}{% continue %}{% endif %}
    {% set ns.n = ns.n + 1 %}
{{ say(m) }}{{ eos_token }}
{% endfor %}
{{ ns.n }} {{ messages[-1] | tojson }} {{ strftime_now('%d %b %Y') }} {{ tools is none }}";
    let text = rendered(text, &[("user", " a "), ("user", "skip this"), ("user", "b")]).unwrap();
    assert_eq!(
        text,
        "<s>[USER] a</s>\n[USER] b</s>\n2 {\"role\": \"user\", \"content\": \"b\"} 01 Jan 2025 True"
    );
}

#[test]
fn a_template_may_refuse_and_may_not_run_on() {
    let why = rendered("{{ raise_exception('roles must alternate') }}", &[]).unwrap_err();
    assert_eq!(
        why,
        "the model's chat template refuses the conversation: roles must alternate (line 1)"
    );
    let endless = "{% for a in range(10000) %}{% for b in range(10000) %}x{% endfor %}{% endfor %}";
    assert!(rendered(endless, &[]).unwrap_err().starts_with("the model's chat template refuses"));
    let why = rendered("{% for %}", &[]).unwrap_err();
    assert!(why.starts_with("the model's chat template cannot be read"), "{why}");
}

#[test]
fn the_beginning_is_not_marked_twice() {
    let template = template("{{ bos_token }}x").unwrap();
    let text = template.render(&[]).unwrap();
    assert!(template.has_beginning(&text));
    assert!(!template.has_beginning("x"));
}

#[test]
fn no_template_is_too_deep_for_the_stack() {
    let many = 100_000;
    let templates = [
        format!("{{{{ {}1 }}}}", "-".repeat(many)),
        format!("{{{{ {}1", "- ".repeat(many)),
        format!("{{{{ {}1 }}}}", "not ".repeat(many)),
        format!("{{{{ {{'a': {{}}}} ~ {}1 }}}}", "1 ~ ".repeat(many)),
        format!("{{{{ a{} }}}}", ".b".repeat(many)),
        format!("{{{{ a{} }}}}", "|upper".repeat(many)),
        format!("{{{{ a{} }}}}", "[0]".repeat(many)),
        format!("{{{{ 1{} }}}}", " if 1 else 1".repeat(many)),
        format!("{{% if a %}}{}{{% endif %}}", "{%- elif a %}".repeat(many)),
        format!("{{# {{{{ #}}{{{{ '}}}}' ~ {}1 }}}}", "-".repeat(many)),
    ];
    for text in templates {
        let why = rendered(&text, &[]).unwrap_err();
        assert!(why.contains("has more than 400") || why.contains("more than 200 `elif`"), "{why}");
    }
}

#[test]
fn a_text_without_end_is_refused() {
    let text = "{% for i in range(10000) %}{{ messages[0].content }}{% endfor %}";
    let why = rendered(text, &[("user", &"x".repeat(10_000))]).unwrap_err();
    assert!(why.ends_with("it makes a text of more than 16 MiB"), "{why}");
}

#[test]
fn what_is_just_not_too_deep_can_be_rendered() {
    assert_eq!(rendered(&format!("{{{{ {}1 }}}}", "-".repeat(400)), &[]).unwrap(), "1");
    let chain = "1 ~ ".repeat(400);
    assert_eq!(rendered(&format!("{{{{ {chain}1 }}}}"), &[]).unwrap(), "1".repeat(401));
    let branches = "{% elif false %}".repeat(200);
    let text = format!("{{% if false %}}{branches}{{% else %}}x{{% endif %}}");
    assert_eq!(rendered(&text, &[]).unwrap(), "x");
}
