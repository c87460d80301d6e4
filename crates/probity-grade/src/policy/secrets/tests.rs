//! Secrets, made up: the right format, nobody's.
//!
//! They are put together from pieces so that no scanner takes this file for a leak.

use super::*;

/// Random-looking text of an alphabet, the same every time.
fn made_up(alphabet: &str, length: usize) -> String {
    let alphabet = alphabet.as_bytes();
    (0..length)
        .map(|at| char::from(alphabet[(at * at + 5 * at + at / 7) % alphabet.len()]))
        .collect()
}

const ALNUM: &str = "aB3dE5fG7hJ9kLmN0pQrS2tUvW4xYz";
const HEX: &str = "0a1b2c3d4e5f6789";
const UPPER: &str = "Q2W3E4R5T6Y7UP";
const DIGIT: &str = "8274519360";

fn alnum(length: usize) -> String {
    made_up(ALNUM, length)
}

fn hex(length: usize) -> String {
    made_up(HEX, length)
}

/// The rules that fire and the texts they fire on.
fn told(text: &str) -> Vec<(&'static str, &str)> {
    scan(text).into_iter().map(|it| (it.rule, &text[it.span])).collect()
}

/// The text is found by the rule, in a sentence as well; with a letter less it is not.
fn check(rule: &str, token: &str) {
    for text in [token.to_owned(), format!("Use `{token}`, please."), format!("key={token}\n")] {
        assert_eq!(told(&text), [(rule, token)], "{text}");
    }
    let glued = format!("x{token}");
    assert_ne!(told(&glued), [(rule, token)], "{glued}");
}

fn check_not(text: &str) {
    assert_eq!(told(text), [], "{text}");
}

#[test]
fn every_shape_finds_what_it_describes_and_nothing_shorter() {
    for (rule, shapes) in tokens::TOKENS {
        for shape in *shapes {
            let token = from_shape(shape);
            assert!(
                told(&token).iter().any(|(it, found)| it == rule && *found == token),
                "{shape} {token}"
            );
            let short = &token[..token.len() - 1];
            let shortest =
                !shape.ends_with('>') || told(short).iter().all(|(_, found)| *found != token);
            assert!(shortest, "{shape} {short}");
            check_not(&format!("Z{}", &token[1..token.len() / 2]));
        }
    }
}

/// A token that a shape describes, as short as it may be.
fn from_shape(shape: &str) -> String {
    let mut token = String::new();
    let mut rest = shape;
    while let Some((literal, tail)) = rest.split_once('<') {
        let (run, tail) = tail.split_once('>').unwrap();
        let (alphabet, length) = run.split_once(':').unwrap();
        let length: usize = length.split('-').next().unwrap().parse().unwrap();
        let alphabet = match alphabet {
            "digit" => DIGIT,
            "hex" | "anyhex" | "lower" => HEX,
            "upper" => UPPER,
            _ => ALNUM,
        };
        token.push_str(literal);
        token.push_str(&made_up(alphabet, length));
        rest = tail;
    }
    token + rest
}

#[test]
fn tokens_are_found_with_their_neighbours_left_alone() {
    check("aws-access-key-id", &format!("AKIA{}", made_up(UPPER, 16)));
    check("github-token", &format!("ghp_{}", alnum(36)));
    check("slack-token", &format!("xoxb-{}-{}-{}", "1".repeat(12), "2".repeat(12), alnum(24)));
    check("sendgrid-key", &format!("SG.{}.{}", alnum(22), alnum(43)));
    check("openai-key", &format!("sk-{}T3BlbkFJ{}", alnum(20), alnum(20)));
    check("openai-key", &format!("sk-proj-{}_-T3BlbkFJ{}", alnum(72), alnum(74)));
    check("mailchimp-key", &format!("{}-us7", hex(32)));
    check("telegram-token", &format!("{}:AA{}", made_up(DIGIT, 9), alnum(33)));
}

#[test]
fn stand_ins_and_other_formats_are_no_tokens() {
    check_not(&format!("ghp_{}", "x".repeat(36)));
    check_not(&format!("sk-{}T3BlbkFK{}", alnum(20), alnum(20)));
    check_not(&format!("sk-{}T3BlbkFJ{}", alnum(12), alnum(20)));
    check_not(&format!("sk-ant-api03-{}AA", alnum(60)));
    check_not(&format!("pk_live_{}", alnum(24)));
    check_not(concat!("AKIA", "IOSFODNN7", "EXAMPLE"));
    check_not(&format!("akia{}", made_up(UPPER, 16).to_lowercase()));
    check_not(&format!("commit {}", hex(40)));
    check_not(&format!("glimt-{}", alnum(24)));
    check_not(&format!("glimt-{}", alnum(26)));
    check_not("hf_thisIsTheNameOfAFunctionThatIsRatherLong()");
}

#[test]
fn a_web_token_has_a_header_and_a_payload() {
    let header = concat!("eyJ", "hbGciOiJIUzI1NiJ9");
    let payload = concat!("eyJ", "zdWIiOiJub2JvZHkifQ");
    check("jwt", &format!("{header}.{payload}.{}", alnum(43)));
    check("jwt", &format!("{header}.{payload}"));
    check_not(header);
    check_not(&format!("{}.{payload}.{}", &header[..header.len() - 1], alnum(43)));
    check_not(&format!("{header}.{}.{}", alnum(20), alnum(43)));
}

#[test]
fn a_private_key_is_a_block_with_something_in_it() {
    let (begin, end) = (
        concat!("-----BEGIN ", "RSA PRIVATE KEY-----"),
        concat!("-----END ", "RSA PRIVATE KEY-----"),
    );
    let block = format!("{begin}\n{}\n{end}", alnum(64));
    assert_eq!(told(&block), [("private-key", &block[..block.len() - end.len() + 5])]);
    assert_eq!(told(&format!("{begin}\n{}", alnum(64))).len(), 1);
    assert_eq!(told(begin).len(), 1);
    check_not(&format!("{begin}\n...\n{end}"));
    check_not(&format!("It starts with `{begin}`."));
    check_not(&block.replace("PRIVATE", "PUBLIC"));
}

#[test]
fn a_password_in_a_url_is_found() {
    assert_eq!(told("postgres://bob:hunter2@db.internal/x"), [("basic-auth", "hunter2")]);
    assert_eq!(told("redis://:hunter2@[::1]:6379"), [("basic-auth", "hunter2")]);
    for text in [
        "http://localhost:8000 @ home",
        "http://host:8000/@bob",
        "http://host:80?q=a@b",
        "https://bob:${PASSWORD}@host",
        "https://bob:<password>@host",
        "https://bob:***@host",
        "git@host:bob/x.git",
        "ssh://git@host:22/x",
    ] {
        check_not(text);
    }
}

#[test]
fn a_known_format_says_more_than_the_name_it_is_assigned_to() {
    let token = format!("ghp_{}", alnum(36));
    assert_eq!(told(&format!("api_key = \"{token}\"")), [("github-token", token.as_str())]);
}

#[test]
fn names_of_secrets_are_found_in_the_syntax_of_many_languages() {
    for text in [
        "password = \"V\"",
        "password='V'",
        "\"password\": \"V\",",
        "'password' => 'V'",
        "password := \"V\"",
        "password := `V`",
        "const char* db_pass[] = \"V\";",
        "char secret[32] = \"V\";",
        "NSString *apiKey = @\"V\";",
        "std::string secret(\"V\");",
        "if (password == \"V\") {",
        "if (\"V\" == password) {",
        "if 'V' !== $password",
        "password: str = \"V\"",
        "let api_key: &'static str = \"V\";",
        "var password string = \"V\"",
        "config[\"client_secret\"] = 'V'",
        "set password \"V\"",
        "<password>V</password>",
        "export DB_PASSWORD=V",
        "spring.datasource.password=V",
        "--password V",
        "--password=V",
        "password: V",
        "- **Password**: `V`",
        "password = V,",
        "The password is V.",
        "Your new password is: V",
        "the api key: V (change it)",
    ] {
        let text = text.replace('V', "hunter2-b4ck");
        assert_eq!(told(&text), [("keyword", "hunter2-b4ck")], "{text}");
    }
    assert_eq!(told("db_secret: four words in rows"), [("keyword", "four words in rows")]);
    assert_eq!(told("token: 'a1b2c3d4e5f60718293a'"), [("keyword", "a1b2c3d4e5f60718293a")]);
}

#[test]
fn what_stands_for_a_secret_is_none() {
    for value in [
        "",
        "''",
        "\"\"",
        "${LINK}",
        "\"${LINK}\"",
        "$LINK",
        "<your key>",
        "{{ link }}",
        "\"{{link}}\"",
        "<%= link %>",
        "[link]",
        "%s",
        "null",
        "None",
        "true",
        "'changeme'",
        "\"xxxxxxxx\"",
        "'********'",
        "\"your-key-here\"",
        "os.environ[\"LINK\"]",
        "os.getenv('LINK')",
        "process.env.LINK",
        "getpass()",
        "self.password",
        "args.password1",
        "user_input",
        "String",
        "Option<String>",
        "new Secret()",
        "await load()",
        ",.:-*?!",
        "'.,:-*?!'",
        "input(\"Password: \")",
        "abc",
    ] {
        check_not(&format!("password = {value}"));
        check_not(&format!("api_key: {value}"));
    }
}

#[test]
fn talking_about_secrets_gives_none_away() {
    for text in [
        "The secret: be kind to other people.",
        "Password: must be at least 8 characters long.",
        "print(\"Enter password: \", end=\"\")",
        "- `api_key`: the key that you got",
        "api_key: The key to use for requests",
        "The secretary: J0hn-Smith",
        "password_length = 123456",
        "secret_name: 'prod-db-1'",
        "max_tokens = 4096",
        "token = 'abc1'",
        "next_token: ident1",
        "The password is incorrect.",
        "The API key is 32 characters long.",
        "def check(password): return password == stored_password",
        "SELECT password FROM users WHERE name = 'b0bby'",
        "curl https://host/x?access_token=ACCESS_TOKEN",
        "password: \"Please enter your password\"",
        "Forgot password? Reset it.",
    ] {
        check_not(text);
    }
}
