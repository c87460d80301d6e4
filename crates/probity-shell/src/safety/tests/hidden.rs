//! Commands that hide in settings, in scripts of editors and in other languages.

use super::{check, judge};
use crate::safety::Risk;

#[test]
fn commands_in_settings_are_run_too() {
    for command in [
        "ssh -o ProxyCommand='rm -rf /' host.example",
        "ssh -oLocalCommand='rm -rf /' -o PermitLocalCommand=yes host.example",
        "scp -o 'proxycommand rm -rf /' a host.example:",
        "sftp -S 'rm -rf /' host.example",
        "git -c core.pager='rm -rf /' log",
        "git -c core.sshCommand='rm -rf / #' fetch",
        "git -c alias.x='!rm -rf /' x",
        "git -c diff.x.textconv='rm -rf /' diff",
        "git config --global alias.x '!rm -rf /'",
        "git config set core.editor 'rm -rf /'",
        "git clone 'ext::rm -rf /'",
        "git fetch --upload-pack='rm -rf /' origin",
        "GIT_SSH_COMMAND='rm -rf /' git fetch",
        "export PAGER='rm -rf /'",
        "env EDITOR='rm -rf /' crontab -e",
        "sudo SYSTEMD_EDITOR='rm -rf /' systemctl edit x",
        "LESSOPEN='|rm -rf /' less a",
        "PROMPT_COMMAND='rm -rf /'",
        "make --eval='x:;@rm -rf /' x",
        "make --eval '$(shell rm -rf /)'",
        "make SHELL='rm -rf /' all",
        "man -P 'rm -rf /' ls",
        "ssh -o RemoteCommand='rm -rf /' host.example",
        "printf 'all:\\n\\trm -rf /\\n' | make -f -",
    ] {
        check(command, Risk::Critical);
    }
    for command in [
        "ssh -o ProxyCommand='ssh -W %h:%p bastion' host.example",
        "ssh -o ProxyCommand=none host.example",
        "git -c core.pager='less -R' -c core.editor=\"$EDITOR --wait\" log",
        "git -c user.name='rm -rf /' commit -m x",
        "git config alias.st status",
        "EDITOR=vim VISUAL=\"$EDITOR\" git commit",
        "NOTE='rm -rf /' make",
        "make --eval='x:;@echo rm -rf /' x",
        "make CFLAGS='-O2; -g' all",
        "PS1='$ '",
    ] {
        check(command, Risk::Safe);
    }
    assert_eq!(judge("EDITOR=\"$VISUAL --wait\" git commit").opaque, None);
}

#[test]
fn scripts_of_editors_are_read() {
    for command in [
        "sed '1e rm -rf /' a",
        "sed 's/x/rm -rf \\//e' a",
        "vim -c ':!rm -rf /' a",
        "vi -es +'!rm -rf /' a",
        "ex -s a <<< '!rm -rf /'",
        "printf '!rm -rf /\\n' | ed a",
        "nvim --cmd 'call system(\"rm -rf /\")'",
        "emacs --batch --eval '(shell-command \"rm -rf /\")'",
        "awk 'BEGIN { print \"x\" | \"rm -rf /\" }'",
        "awk 'BEGIN { c = \"rm -rf /\"; c | getline }'",
        "awk 'BEGIN { while ((\"rm -rf /\" | getline x) > 0) print x }'",
        "awk '{ system(\"rm -rf / \" $1) }' list",
        "awk -v c='rm -rf /' 'BEGIN { system(c) }'",
    ] {
        check(command, Risk::Critical);
    }
    for command in [
        "sed '/rm -rf \\//e true' a",
        "sed -n 's/a/b/w out.txt' a",
        "sed -i.save s/a/b/ a",
        "sed -f script a",
        "vim -c 'set nu' -c 'normal G' a",
        "vim +12 /etc/hosts",
        "ed -s /etc/hosts <<< ',p'",
        "awk '/system(\"rm -rf \\/\")/ { n++ }' a",
        "awk '{ print \"system(\\\"rm -rf /\\\")\" }' a",
        "awk '{ print $1 > \"out.txt\" }' a",
        "awk '{ print | \"sort -u\" } END { close(\"sort -u\") }' a",
        "awk '{ print ($1 > \"/etc\") }' a",
        "emacs --batch --eval '(message \"rm -rf /\")'",
    ] {
        check(command, Risk::Safe);
    }
    check("sed -n 'w /etc/hosts' a", Risk::High);
    check("awk '{ print > \"/dev/sda\" }' a", Risk::Critical);
    check("sed -i /x/d /var/log/auth.log", Risk::High);
}

#[test]
fn calls_of_other_languages_are_read() {
    for command in [
        "perl -e 'unlink glob \"/etc/*\"'",
        "perl -MFile::Path=remove_tree -e 'remove_tree(\"/usr\")'",
        "perl -e 'File::Path::remove_tree(\"/usr\")'",
        "perl -e 'print qx{rm -rf /}'",
        "perl -e 'open(F, \"rm -rf / |\")'",
        "ruby -e 'Dir.glob(\"/etc/*\").each { |f| File.delete(f) }'",
        "ruby -e 'puts %x(rm -rf /)'",
        "ruby -e 'Dir[\"/etc/*\"].each { |f| File.delete f }'",
        "perl -e 'unlink </etc/*>'",
        "perl -e 'unlink for glob(\"/etc/*\")'",
        "node -e 'require(\"fs\").unlinkSync(\"/etc/hosts\")'",
        "osascript -e 'do shell script \"rm -rf /\"'",
        "ruby -rfileutils -e 'FileUtils.rm_rf Dir.home'",
        "php -r 'array_map(\"unlink\", glob(\"/etc/*\"));'",
        "python3 -c 'import os; [os.remove(f) for f in os.listdir(\"/etc\")]'",
        "python3 -c 'import shutil, pathlib; shutil.rmtree(pathlib.Path.home())'",
        "python3 -c 'import pathlib; pathlib.Path(\"/etc/fstab\").unlink()'",
        "python3 -c 'import os; os.removedirs(\"/opt/x\")'",
        "python3 -c 'exec(\"import os; os.system(\\\"rm -rf /\\\")\")'",
        "python3 -c 'import os,base64; os.system(base64.b64decode(\"cm0gLXJmIC8=\"))'",
        "node -e 'require(\"fs\").rmSync(\"/\", {recursive: true})'",
        "node -e 'require(\"child_process\").spawnSync(\"rm\", [\"-rf\", \"/\"])'",
        "deno eval 'Deno.remove(\"/etc\", {recursive: true})'",
    ] {
        check(command, Risk::Critical);
    }
    check("python3 -c 'import os; os.chmod(\"/etc/passwd\", 0o777)'", Risk::High);
    check("ruby -rfileutils -e 'FileUtils.rm(Dir.glob(\"*\"))'", Risk::High);
    check("perl -e 'open(F, \">\", \"/etc/hosts\")'", Risk::High);
    check("python3 -c 'import shutil; shutil.copy(\"a\", \"/etc/hosts\")'", Risk::High);
    check("ruby -e 'Dir.glob(\"*\").each { |f| File.delete(f) }'", Risk::High);
    for command in [
        "python3 -c 'print(\"a\".replace(\"/etc\", \"/usr\"))'",
        "python3 -c 'import shutil; shutil.copy(\"/etc/hosts\", \"a\")'",
        "python3 -c 'import requests; print(requests.get(\"https://example.com\").text)'",
        "python3 -c 'import subprocess; subprocess.run([\"ls\", \"-l\"])'",
        "ruby -e 'puts Dir.glob(\"/etc/*\")'",
        "ruby -e 'puts 100 % x'",
        "node -e 'console.log([1, 2].copyWithin(0, 1))'",
        "node -e 'new Map().delete(\"/etc\")'",
        "python3 -c 'paths.remove(\"/etc\")'",
        "perl -ne 'print unless $unlink < 3 && $x > 2'",
        "python3 -c 'd = {}; d.pop(\"/etc\", None)'",
        "perl -ne 'print if /unlink/'",
    ] {
        check(command, Risk::Safe);
    }
}
