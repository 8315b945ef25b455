import { oneOf } from '../../config/parse-setting.ts';
import { ExpungeError, messageOf } from '../../errors.ts';
import type { Invocation } from '../command.ts';

/** The shells that have a completion. */
export const shells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof shells)[number];

// Each script asks `expunge complete WORDS…`, with the words from the first argument to the cursor. The first line of the answer says what can
// follow: `words`, listed one per line with a tab before their description, or `files` or `folders`, which the shell completes best itself.

/** This must run in the bash 3.2 of macOS. Bash splits words at `=` and `:`; this script joins them again. */
const bash = `# Completion of expunge for bash. In ~/.bashrc: source <(expunge completion bash)
_expunge() {
  local rest=\${COMP_LINE:0:COMP_POINT} kind= last=-1 words=() i word line
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if ((last < 0)) || [[ $rest == [[:space:]]* ]]; then
      last=$((last + 1))
      words[last]=
    fi
    rest=\${rest#"\${rest%%[![:space:]]*}"}
    ((i == COMP_CWORD)) && word=$rest
    words[last]+=$word
    rest=\${rest#"$word"}
  done
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ -z $kind ]]; then kind=$line; else COMPREPLY+=("\${line%%$'\\t'*}"); fi
  done < <("\${words[0]/#\\~/$HOME}" complete "\${words[@]:1}" 2>/dev/null)
  [[ $kind == words ]] && compopt +o default 2>/dev/null
  return 0
}
complete -o default -F _expunge expunge
`;

const zsh = `#compdef expunge
# Completion of expunge for zsh. In ~/.zshrc, below compinit: source <(expunge completion zsh)
_expunge() {
  local -a lines found
  local line
  lines=("\${(@f)$("\${words[1]/#\\~/$HOME}" complete "\${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
  compset -P '--*='
  case $lines[1] in
    files) _files ;;
    folders) _files -/ ;;
    words)
      for line in $lines[2,-1]; do
        found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
      done
      _describe -V expunge found
      ;;
  esac
}
if [[ $funcstack[1] == _expunge ]]; then _expunge "$@"; else compdef _expunge expunge; fi
`;

const fish = `# Completion of expunge for fish. In ~/.config/fish/config.fish: expunge completion fish | source
function __expunge_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l current (commandline --current-token --cut-at-cursor)
    set -l lines ($words[1] complete $words[2..-1] "$current" 2>/dev/null)
    set -l flag (string match --regex -- '^--[^=]+=' "$current")
    set -l value (string replace -- "$flag" '' "$current")
    switch "$lines[1]"
        case files
            set lines '' (__fish_complete_path "$value")
        case folders
            set lines '' (__fish_complete_directories "$value" '')
    end
    for line in $lines[2..-1]
        echo "$flag$line"
    end
end
complete --command expunge --no-files --keep-action --arguments '(__expunge_complete)'
`;

const completionScripts: Record<Shell, string> = { bash, zsh, fish };

/** Prints the completion of a shell. It asks this program for the words, so it stays correct after an update. */
export async function execute({ args, stdout }: Invocation): Promise<number> {
  stdout.write(completionScripts[readShell(args[0] ?? '')]);
  return 0;
}

function readShell(text: string): Shell {
  try {
    return oneOf(shells)(text);
  } catch (error) {
    throw new ExpungeError('USAGE', messageOf(error));
  }
}
