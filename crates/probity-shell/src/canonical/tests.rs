use proptest::prelude::*;

use super::Form;
use crate::{
    Script,
    equivalence::{self, Verdict},
};

fn compare(left: &str, right: &str) -> equivalence::Equivalence {
    let parse = |text| Script::parse(text).unwrap_or_else(|error| panic!("`{text}`: {error}"));
    equivalence::compare(&parse(left), &parse(right))
}

fn canonical(text: &str) -> String {
    Form::of(&Script::parse(text).expect("it parses")).to_string()
}

#[track_caller]
fn equal(pairs: &[(&str, &str)]) {
    for (left, right) in pairs {
        let found = compare(left, right);
        assert_eq!(found.verdict, Verdict::Equal, "`{left}` and `{right}`: {found:#?}");
    }
}

#[track_caller]
fn not_equal(pairs: &[(&str, &str)]) {
    for (left, right) in pairs {
        let found = compare(left, right);
        assert_ne!(found.verdict, Verdict::Equal, "`{left}` and `{right}`: {:#?}", found.canonical);
    }
}

#[test]
fn options_have_many_spellings() {
    equal(&[
        ("ls -la", "ls -a -l"),
        ("ls --all -l", "ls -al"),
        ("ls -l docs", "ls docs -l"),
        ("cp -r a b", "cp --recursive a b"),
        ("cp -a a b", "cp -dR --preserve=all a b"),
        ("grep -i -n x f", "grep -ni x f"),
        ("sort --reverse --unique", "sort -ur"),
        ("cut -d, -f1", "cut -f 1 -d ','"),
        ("git commit -am msg", "git commit --all --message=msg"),
        ("git commit -a -m msg", "git commit -m msg -a"),
        ("mkdir -p a/b", "mkdir --parents a/b"),
    ]);
}

#[test]
fn options_with_other_values_stay_apart() {
    not_equal(&[
        ("ls --all", "ls --help"),
        ("cp --recursive a b", "cp --interactive a b"),
        ("cut -d1 -f2", "cut -d2 -f1"),
        ("head -n 77 f", "head -n 7 f"),
        ("tail -n 5 f", "tail -n +5 f"),
        ("tar -cf a.tar b", "tar -fc a.tar b"),
        ("sort -k2 -k1", "sort -k1 -k2"),
        ("ssh -p 22 h", "ssh -P 22 h"),
        ("find . -type d", "find . -type f"),
        ("java -cp a", "java -pc a"),
        ("curl -o f u", "curl -O f u"),
        ("grep -v x f", "grep x f"),
        ("uniq f out", "uniq out < f"),
        ("sort -n f | uniq", "sort -nu f"),
        ("sort f | uniq -c", "sort -u f"),
        ("ls -1", "ls"),
        ("ls -1l | wc -l", "ls -m | wc -l"),
        ("awk -F: '{print $2}' p", "cut -d: -f2 p"),
        ("awk -F' ' '{print $1}' p", "cut -d' ' -f1 p"),
        ("awk '{print $1}' p", "cut -f1 p"),
        ("sed -n 2p f", "head -n 2 f"),
        ("sed 2d f", "tail -n +2 f"),
        ("sed -n 1,5p a b", "head -n 5 a b"),
        ("find d -empty", "find d -size 0"),
        ("find d -exec wc -l {} +", "find d -exec wc -l {} \\;"),
        ("find d -exec tar rf a.tar {} +", "find d -exec tar rf a.tar {} \\;"),
        ("awk 'NR%3' f", "sed -n '1~3p' f"),
        ("awk 'NR>3' f", "sed -n 3,9p f"),
        ("echo -n a | wc -c", "wc -c <<< a"),
        ("echo $x | wc -c", "wc -c <<< $x"),
        ("find d -name '*.*'", "find d"),
        ("find d -name *", "find d"),
        ("printf 'a%s\\n'", "echo 'a%s'"),
        ("printf '%s\\n' a b", "echo a b"),
        ("printf abc", "echo abc"),
        ("echo -e 'a\\tb'", "echo 'a\\tb'"),
        ("wc -l f g | awk '{print $1}'", "wc -l < f"),
        ("hostname -f", "uname -n"),
        ("ls ./d", "ls d"),
        ("find d/", "find d"),
    ]);
}

#[test]
fn what_is_done_anyway_need_not_be_said() {
    equal(&[
        ("head f", "head -n 10 f"),
        ("head -5 f", "head -n 5 f"),
        ("tail -n10 f", "tail f"),
        ("find", "find . -print"),
        ("find -name a", "find . -name a -print"),
        ("kill 12", "kill -15 12"),
        ("kill -9 12", "kill -s KILL 12"),
        ("kill -SIGHUP 12", "kill -1 12"),
        ("cd", "cd ~"),
        ("cd \"$HOME\"", "cd"),
        ("xargs", "xargs echo"),
    ]);
    not_equal(&[("head f", "head -n 11 f"), ("kill 12", "kill -9 12"), ("find .", "find /")]);
}

#[test]
fn quotes_are_compared_by_what_they_protect() {
    equal(&[
        ("echo 'a b'", "echo \"a b\""),
        ("echo a\\ b", "echo 'a b'"),
        ("r\\m f", "rm f"),
        ("rm 'f'", "rm f"),
        ("echo $'a\\tb'", "echo 'a\tb'"),
        ("echo \"${x}\"", "echo \"$x\""),
        ("echo `date`", "echo $(date)"),
        ("x=\"$y\"", "x=$y"),
        ("echo a b", "echo 'a b'"),
        ("touch a{1,2}", "touch a1 a2"),
    ]);
    not_equal(&[
        ("echo \"$x\"", "echo '$x'"),
        ("echo \"$x\"", "echo $x"),
        ("rm '*'", "rm *"),
        ("echo 'a  b'", "echo 'a b'"),
        ("touch a b", "touch 'a b'"),
        ("ls ~", "ls '~'"),
        ("echo {a,b}", "echo '{a,b}'"),
        ("echo ${x:-a}", "echo ${x-a}"),
        ("echo $(date)", "echo '$(date)'"),
        ("rm \"a b\"", "rm a b"),
    ]);
}

#[test]
fn operands_are_moved_only_where_their_order_does_not_matter() {
    equal(&[
        ("rm a b", "rm b a"),
        ("chmod 755 a b", "chmod 755 b a"),
        ("cp a b dir", "cp b a dir"),
    ]);
    not_equal(&[
        ("cp a b", "cp b a"),
        ("mkdir a a/b", "mkdir a/b a"),
        ("git checkout -- f", "git checkout f"),
        ("cat a b", "cat b a"),
        ("mv a b", "mv b a"),
        ("diff a b", "diff b a"),
        ("ln -s a b", "ln -s b a"),
    ]);
}

#[test]
fn habits_of_single_utilities() {
    equal(&[
        ("tar xzf a.tgz", "tar -x -z -f a.tgz"),
        ("tar xzf a.tgz", "tar --extract --gzip --file=a.tgz"),
        ("tar cvf a.tar d", "tar -cvf a.tar d"),
        ("egrep 'a|b' f", "grep -E 'a|b' f"),
        ("[ -f x ]", "test -f x"),
        ("[ a == b ]", "test a = b"),
        ("ps aux", "ps axu"),
        ("dd if=a of=b bs=1M", "dd bs=1048576 of=b if=a"),
        ("chmod u=rwx,go=rx f", "chmod 0755 f"),
        ("chmod g+x,u+x f", "chmod ug+x f"),
        ("sed -e s/a/b/ f", "sed 's|a|b|' f"),
        ("sed -n 1,5p f", "head -n 5 f"),
        ("cut -d= -f1 f", "cut -d '=' -f 1 f"),
        ("awk '{ print $1, $2 }' f", "awk '{print $1,$2}' f"),
        ("unzip -d p a.zip", "unzip a.zip -d p"),
        ("unzip -o -d p a.zip m", "unzip -o a.zip m -d p"),
        ("unzip -q a.zip -dp m n", "unzip -q -d p a.zip m n"),
        ("unzip -P x a.zip -d p", "unzip -d p -P x a.zip"),
        ("date +%F", "date +%Y-%m-%d"),
        ("bash -c 'ls -la'", "bash -c \"ls -a -l\""),
        ("ssh host ls -la", "ssh host 'ls -a -l'"),
        ("sudo rm -rf a", "sudo rm -fr a"),
        ("env A=1 ls -la", "env A=1 ls -al"),
        ("/bin/rm f", "rm f"),
        ("git log --oneline -7", "git log --oneline -n 7"),
        ("git log -7 --oneline", "git log --oneline --max-count=7"),
        ("git log -n 3 -7", "git log -7"),
        ("ls -la .", "ls -la"),
        ("ls -- . | wc -l", "ls | wc -l"),
    ]);
    not_equal(&[
        ("git log -7", "git log -n 8"),
        ("git log -7", "git log"),
        ("git log -- -7", "git log -7"),
        ("ls -d .", "ls ."),
        ("ls -d .", "ls -d"),
        ("ls -R .", "ls -R"),
        ("ls a .", "ls a"),
        ("ls . .", "ls"),
        ("ls ..", "ls"),
        ("ls .*", "ls"),
        ("ls \"$x\"", "ls"),
        ("xargs ls .", "xargs ls"),
        ("find a -exec ls . {} +", "find a -exec ls {} +"),
        ("head -n 3 -5 f", "head -n 5 f"),
        ("tar xf a", "tar cf a"),
        ("ps aux", "ps au"),
        ("chmod +x f", "chmod a+x f"),
        ("sed s/a/b/ f", "sed s/a/b/g f"),
        ("sed -n 1,5p a b", "head -n 5 a b"),
        ("awk '{print $1 $2}' f", "awk '{print $1,$2}' f"),
        ("awk '{print \"a  b\"}'", "awk '{print \"a b\"}'"),
        ("unzip a.zip -o", "unzip -o a.zip"),
        ("unzip a.zip -d p", "unzip -d q a.zip"),
        ("unzip a.zip m -d p n", "unzip -d p a.zip m n"),
        ("unzip -d p a.zip -d q", "unzip -d q -d p a.zip"),
        ("unzip a.zip -x m -d p", "unzip -d p a.zip -x m"),
        ("unzip a.zip -d", "unzip -d a.zip"),
        ("unzip $x -d p", "unzip -d p $x"),
        ("xargs unzip a.zip m -d p", "xargs unzip -d p a.zip m"),
        ("dd if=a of=b", "dd if=b of=a"),
        ("/opt/bin/rm f", "rm f"),
    ]);
}

#[test]
fn blanks_around_operators_of_awk() {
    equal(&[
        ("awk '{sum+=$3} END{print sum}' f", "awk '{ sum += $3 } END { print sum }' f"),
        ("awk '/a/&&/b/' f", "awk '/a/ && /b/' f"),
        ("awk '$3>30' f", "awk '$3 > 30' f"),
        ("awk '$1==-1||$2!=\"a b\"' f", "awk '$1 == -1 || $2 != \"a b\"' f"),
        ("awk '$0!~/a  b/' f", "awk ' $0 !~ /a  b/ ' f"),
        ("awk '!/x/' f", "awk '! /x/' f"),
        ("awk '/a/,/b/{n++}' f", "awk '/a/, /b/ { n++ }' f"),
        ("awk '{print ($1+$2)/2}' f", "awk '{ print ( $1 + $2 ) / 2 }' f"),
        ("awk '{print a-1}' f", "awk '{print a - 1}' f"),
        ("awk '{print NR%2?\"x\":\"y\"}' f", "awk '{ print NR % 2 ? \"x\" : \"y\" }' f"),
        ("awk '{a[$1]=a[$1] $2}' f", "awk '{ a[ $1 ] = a[$1] $2 }' f"),
        ("awk '{if($1>2)print}' f", "awk '{ if ($1 > 2)print }' f"),
        ("awk '{print>\"a\"}' f", "awk '{ print > \"a\" }' f"),
        ("awk '{\n  x = 1\n}' f", "awk '{\nx=1\n}' f"),
        ("awk '$1 ~ /^[/ ]/' f", "awk '$1~/^[/ ]/' f"),
    ]);
    not_equal(&[
        ("awk '{print a b}' f", "awk '{print ab}' f"),
        ("awk '{print a -1}' f", "awk '{print a - 1}' f"),
        ("awk '{print a -1}' f", "awk '{print a-1}' f"),
        ("awk '{print a \" = \" b}' f", "awk '{print a \"=\" b}' f"),
        ("awk '/a && b/' f", "awk '/a&&b/' f"),
        ("awk '/a = b/' f", "awk '/a=b/' f"),
        ("awk '{if (x) / y/ }' f", "awk '{if (x) /y/ }' f"),
        ("awk '{print 1e+5}' f", "awk '{print 1e + 5}' f"),
        ("awk '{print f (x)}' f", "awk '{print f(x)}' f"),
        ("awk '{print a + +b}' f", "awk '{print a ++b}' f"),
        ("awk '{print a ++b}' f", "awk '{print a++ b}' f"),
        ("awk '{print a ! ~ b}' f", "awk '{print a !~ b}' f"),
        ("awk '{a = = b}' f", "awk '{a == b}' f"),
        ("awk '{print > > \"x\"}' f", "awk '{print >> \"x\"}' f"),
        ("awk '{print 1 .5}' f", "awk '{print 1.5}' f"),
        ("awk '{x=1\ny=2}' f", "awk '{x=1 y=2}' f"),
        ("awk '{x=1 # y = 2\n}' f", "awk '{x=1 # y=2\n}' f"),
    ]);
}

#[test]
fn errors_go_down_the_pipe() {
    equal(&[
        ("make |& tee log", "make 2>&1 | tee log"),
        ("make > o |& tee log", "make > o 2>&1 | tee log"),
        ("a 2> e < i |& b |& c", "a 2> e < i 2>&1 | b 2>&1 | c"),
        ("{ a; b; } |& c", "{ a; b; } 2>&1 | c"),
        ("(a) |& c", "(a) 2>&1 | c"),
        ("bash -c 'a |& b'", "bash -c 'a 2>&1 | b'"),
    ]);
    not_equal(&[
        ("make |& tee log", "make | tee log"),
        ("make |& tee log", "make 2> log | tee log"),
        ("make 2>&1 > o | tee log", "make > o |& tee log"),
        ("cat f |& wc", "cat f | wc"),
        ("a | b |& c", "a |& b | c"),
        ("ksh -c 'a |& b'", "ksh -c 'a 2>&1 | b'"),
        ("sh -c 'a |& b'", "sh -c 'a 2>&1 | b'"),
        ("[[ -f a ]] |& b", "[[ -f a ]] | b"),
    ]);
}

#[test]
fn a_find_expression_is_read_as_logic() {
    equal(&[
        ("find . -name a -type f", "find . -type f -name a"),
        ("find . -not -name a", "find . ! -name a"),
        ("find . \\( -name a -or -name b \\)", "find . -name b -o -name a"),
        ("find . -name a -a -name b", "find . -name a -name b"),
        ("find . -name '*.c' -maxdepth 2", "find . -maxdepth 2 -name \"*.c\""),
        ("find . -perm 0644", "find . -perm 644"),
        ("find . -exec grep -li x '{}' \\;", "find . -exec grep -i -l x {} ';'"),
        ("find . -type f -exec rm {} \\;", "find . -type f -delete"),
        ("find . -name a -print0 | xargs -0 -r ls -l", "find . -name a -exec ls -l {} +"),
        ("find . -name a -print0 | xargs -0 chmod 600", "find . -name a -exec chmod 600 {} +"),
        ("find . -name a -print0 | xargs -0 -I% cp % d", "find . -name a -exec cp {} d \\;"),
        ("find ./ -type f", "find . -type f"),
    ]);
    not_equal(&[
        ("find . -name a -o -name b -print", "find . \\( -name a -o -name b \\) -print"),
        ("find . -print -name a", "find . -name a -print"),
        ("find . -prune -o -name a", "find . -name a -o -prune"),
        ("find . -exec rm {} \\;", "find . -delete"),
        ("find . -name a | xargs ls", "find . -name a -exec ls {} +"),
        ("find . -perm -644", "find . -perm 644"),
        ("find . -mtime 1", "find . -mtime +1"),
        ("find ./", "find ."),
        ("find . -name '*.c'", "find . -name *.c"),
        ("find a b", "find b a"),
        ("find . -newer a -name b", "find . -newer b -name a"),
    ]);
}

#[test]
fn pipes_and_redirections() {
    equal(&[
        ("cat f | grep x", "grep x f"),
        ("grep x < f", "grep x f"),
        ("cat f | sort | uniq", "sort f | uniq"),
        ("cat f|wc -l", "wc -l < f"),
        ("ls>f", "ls > f"),
        ("ls 1> f", "ls > f"),
        ("ls &> f", "ls > f 2>&1"),
        ("ls 2> e > f", "ls > f 2> e"),
        ("a; b", "a\nb"),
        ("{ ls; }", "ls"),
        ("time ls -la", "time ls -a -l"),
        ("cat f | awk '{print $1}'", "awk '{print $1}' f"),
        ("xargs -I % rm %", "xargs -I{} rm {}"),
    ]);
    not_equal(&[
        ("wc -l f", "wc -l < f"),
        ("ls > f 2>&1", "ls 2>&1 > f"),
        ("ls > f", "ls >> f"),
        ("a && b", "a; b"),
        ("a || b", "a && b"),
        ("a & b", "a; b"),
        ("a | b", "b | a"),
        ("(cd a; ls)", "cd a; ls"),
        ("cat f | awk '{print FILENAME}'", "awk '{print FILENAME}' f"),
        ("cat a b | grep x", "grep x a b"),
        ("cat f | sort g", "sort f"),
        ("! a", "a"),
        ("grep -l x f", "grep -l x < f"),
        ("ls 2>&1 | grep x", "ls | grep x"),
        ("time cat <<E\na\nE", "time cat <<E\nb\nE"),
        ("time ls", "time -p ls"),
        ("cat <<E\na\nE", "cat <<E\nb\nE"),
        ("cat <<'E'\n$a\nE", "cat <<E\n$a\nE"),
        (
            "for ((i=0;i<2;i++)); do cat <<E\na\nE\ndone",
            "for ((i=0;i<2;i++)); do cat <<E\nb\nE\ndone",
        ),
        ("[[ a = b ]]", "[[ a = 'b' ]]"),
    ]);
}

/// Pairs that were once called equal, or nearly.
#[test]
fn what_only_looks_the_same() {
    not_equal(&[
        ("sed -n 1p *.txt", "head -n 1 *.txt"),
        ("sed 1d $f", "tail -n +2 $f"),
        ("sed -n 1p \"$@\"", "head -n 1 \"$@\""),
        ("xargs sed 1q", "xargs head -n 1"),
        ("find . -exec sed -n 1p {} +", "find . -exec head -n 1 {} +"),
        ("cat \"$@\" | grep x", "grep x \"$@\""),
        ("find . -exec printf '%s\\n' {} +", "find . -exec echo {} +"),
        ("xargs printf 'hi\\n'", "xargs echo hi"),
        ("ls > ${x//a/b}", "ls > ${x/a/b}"),
        ("cat \"${x//a/b}\"", "cat \"${x/a/b}\""),
        ("cut -d= -f1", "cut -d '' -f1"),
        ("head -n=5 f", "head -n 5 f"),
        ("echo 5 | read x; echo $x", "read x <<< 5; echo $x"),
        ("cat f | . /dev/stdin", ". /dev/stdin < f"),
        ("case $x in $p) a;; esac", "case $x in \"$p\") a;; esac"),
        ("ls > $x", "ls > \"$x\""),
        ("PATH=$PATH:~/bin", "PATH=\"$PATH:~/bin\""),
        ("export P=~/bin", "export P='~/bin'"),
        ("echo \"$x\" a", "echo \"$x a\""),
        ("sh -c 'ls &> f'", "sh -c 'ls > f 2>&1'"),
        ("sh -c 'echo {a,b}'", "sh -c 'echo a b'"),
        ("cp a/x b/x d", "cp b/x a/x d"),
        ("rm -v a b", "rm -v b a"),
        ("rm -i a b", "rm -i b a"),
        ("find . -name a -print0 | xargs -0 ls", "find . -name a -exec ls {} +"),
        ("find . -name a -print0 | xargs -0 md5sum", "find . -name a -exec md5sum {} +"),
        ("find . -exec cp -t d {} +", "find . -exec cp -t d {} \\;"),
        ("find . -links 2 -type f -exec rm {} +", "find . -links 2 -type f -delete"),
        ("xargs -I{} -n 2 echo {}", "xargs -I{} echo {}"),
        ("xargs -I{} -L 1 echo {}", "xargs -I{} echo {}"),
        ("find ./ -type f -printf '%H'", "find . -type f -printf '%H'"),
        ("chmod u+x,g+X f", "chmod g+X,u+x f"),
        ("tr a-z '[:upper:]'", "tr a-z A-Z"),
        ("dd conv=notrunc conv=noerror", "dd conv=noerror"),
        ("pkill -s 9 foo", "pkill -9 foo"),
        ("killall -n 1 foo", "killall -HUP foo"),
        ("head f -5", "head -n 5 f"),
        ("tail -5 a b", "tail -n 5 a b"),
        ("tail -f f", "cat f | tail -f"),
        ("env", "printenv"),
        ("pwd -P", "pwd"),
        ("unlink a b", "rm a b"),
        ("unlink *", "rm *"),
        ("/bin/pwd", "pwd"),
        ("/bin/echo --help", "echo --help"),
        ("grep -f - f", "grep -f - < f"),
        ("awk -f p f", "awk -f p < f"),
        ("awk \"$p\" f", "awk \"$p\" < f"),
        ("sed '1r /dev/stdin' f", "sed '1r /dev/stdin' < f"),
        ("awk 'NR<=9' f", "head -n 9 f"),
        ("yes | sed -n 1,3p", "yes | head -n 3"),
        ("awk -F\u{e9} '{print $1}' f", "cut -d\u{e9} -f1 f"),
        ("bzip2 --fast -7 f", "bzip2 -7 f"),
        ("bzip2 -2 -3 f", "bzip2 -3 -2 f"),
        ("bzip2 -z -t f", "bzip2 -z -t -z f"),
        ("md5sum --text --tag f", "md5sum --text --tag --text f"),
        ("cmp --pri a b", "cmp --print-bytes a b"),
    ]);
}

#[test]
fn a_verdict_says_what_it_rests_on() {
    let found = compare("head -n 5 f", "head -n 6 f");
    assert_eq!(found.verdict, Verdict::Different);
    assert_eq!(
        found.difference.map(|it| it.to_string()).as_deref(),
        Some("option: `5` instead of `6`")
    );
    let found = compare("frobnicate --fast", "frobnicate --slow");
    assert_eq!(found.verdict, Verdict::Unknown);
    let found = compare("ls", "rm f");
    assert_eq!(found.verdict, Verdict::Unknown);
}

#[test]
fn reading_a_form_again_changes_nothing() {
    for text in [
        "find . \\( -name a -o ! -name 'b c' \\) -exec sh -c 'echo \"$1\"' _ {} \\; > out 2>&1",
        "for f in *.txt; do mv \"$f\" \"${f%.txt}.md\"; done",
        "if [ -f a ]; then cat a | grep -e x; elif b; then c; else d; fi",
        "case $x in a|b) ls -la;; *) echo no;; esac",
        "while read -r l; do echo \"$l\"; done < f",
        "cat <<E\na $b \\$c `d`\nE",
        "a && { b || c; } | d &",
        "x=$(ls -l | wc -l) y='a b' cmd -- -f",
        "f() { ls -la; }",
        "rsync -avz a b",
        "time ls -l | wc -l",
        "echo $((1+2)) ~/x ~bob [a-z]*.?",
    ] {
        let once = canonical(text);
        assert_eq!(canonical(&once), once, "from `{text}`");
    }
}

#[test]
fn an_escaped_dollar_at_the_end_of_a_string_is_text() {
    for (quoted, text) in [(r#""\$(\"""#, r#"'$("'"#), (r#"">\$(\"" b"#, r#"'>$("' b"#)] {
        assert_eq!(canonical(&format!("ls {quoted}")), canonical(&format!("ls {text}")));
    }
}

/// A word and two ways to write it.
fn word() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zA-Z0-9._/-]{1,8}", "[a-z *?$'\"\\\\;|&<>(){}~#!]{1,8}"]
}

fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn double_quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        if matches!(character, '"' | '\\' | '$' | '`') {
            out.push('\\');
        }
        out.push(character);
    }
    out.push('"');
    out
}

fn backslashed(text: &str) -> String {
    text.chars().flat_map(|it| ['\\', it]).collect()
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[-a-z0-9 \t\n'\"`$(){}\\[\\]<>|&;*?~=!#\\\\/é\u{5c1}\u{feff}]{0,40}") {
        for found in crate::extract::all(&text) {
            prop_assert!(text.get(found.span.start..found.span.end).is_some());
        }
        if let Ok(script) = Script::parse(&text) {
            let form = Form::of(&script);
            prop_assert_eq!(equivalence::compare_forms(&form, &form).difference, None);
        }
    }

    #[test]
    fn a_command_is_equal_to_itself_written_otherwise(
        program in "(ls|grep|cp|rm|frob|find|echo|sed)",
        words in prop::collection::vec(word(), 0..4),
        style in 0..3_usize,
        gap in "[ \t]{1,3}",
    ) {
        let quote = [single_quoted, double_quoted, backslashed][style];
        let plain: Vec<_> = words.iter().map(|it| single_quoted(it)).collect();
        let other: Vec<_> = words.iter().map(|it| quote(it)).collect();
        let left = format!("{program} {}", plain.join(" "));
        let right = format!("  {program}{gap}{} ", other.join(&gap));
        let found = compare(&left, &right);
        prop_assert_eq!(found.verdict, Verdict::Equal, "{} | {} | {:?}", left, right, found.canonical);
    }

    #[test]
    fn another_option_value_is_never_equal(
        (program, option) in prop::sample::select(vec![
            ("head", "-n"), ("tail", "-n"), ("cut", "-f"), ("sort", "-k"), ("grep", "-m"), ("tar", "-f"), ("curl", "-o"),
            ("find . -name", ""), ("ssh", "-p"), ("git commit", "-m"), ("du", "-d"), ("xargs", "-n"), ("wget", "-O"),
        ]),
        one in "[a-z0-9]{1,4}",
        two in "[a-z0-9]{1,4}",
    ) {
        prop_assume!(one != two);
        let (left, right) = (format!("{program} {option} {one} x"), format!("{program} {option} {two} x"));
        prop_assert_ne!(compare(&left, &right).verdict, Verdict::Equal);
    }

    #[test]
    fn forms_are_stable(
        program in "(ls|grep|cp|rm|frob|find|echo|sed|tar|xargs|kill|git commit|chmod)",
        words in prop::collection::vec(prop_oneof!["-[a-zA-Z0-9]{1,3}", "--[a-z]{1,6}(=[a-z]{1,3})?", "[a-z*$~]{1,4}", "\"[a-z $]{1,4}\""], 0..5),
    ) {
        let text = format!("{program} {}", words.join(" "));
        if let Ok(script) = Script::parse(&text) {
            let once = Form::of(&script).to_string();
            let twice = Script::parse(&once).map(|it| Form::of(&it).to_string());
            prop_assert_eq!(twice.as_deref(), Ok(&*once), "from {}", text);
        }
    }
}
