import { describeSource } from '../../config/list-source.ts';
import type { Source, Sources } from '../../config/read-config.ts';
import { type Config, type SettingName, settings, shownSetting } from '../../config/settings.ts';
import { describeDefinition } from '../../model/resource.ts';
import { hanging } from '../../terminal/render-markdown.ts';
import { padded, textWidth } from '../../terminal/style.ts';
import { type Invocation, jsonLines } from '../command.ts';

/** `config show`: prints every setting with its value and its source; for secrets only the source. */
export async function execute({ options, config, sources, env, stdout }: Invocation): Promise<number> {
  const rows = [...settingRows(config, sources), ...fileRows(config), ...secretRows(config, env)];
  const print = jsonLines(stdout, options.json);
  for (const { from: _, ...row } of rows) print('setting', row);
  if (!options.json) stdout.write(table(rows, stdout.columns || Number.POSITIVE_INFINITY));
  return 0;
}

type Row = { setting: string; variable: string | null; value: string | null; source: Source | null; from: string };

function settingRows(config: Config, sources: Sources): Row[] {
  return (Object.keys(settings) as SettingName[]).map((name) => {
    const { flag, env: variable } = settings[name];
    const value = shownSetting(name, config[name]);
    return { setting: flag, variable, value, source: sources[name], from: describeOrigin(sources[name], variable) };
  });
}

/** The sources of schedules and the resources, which only the configuration file can define. */
function fileRows({ sources, resources, baseUrl = 'BASE_URL' }: Config): Row[] {
  const lists = Object.entries(sources).map(([name, list]) => [`source ${name}`, describeSource(list)] as const);
  const kinds = Object.entries(resources).map(
    ([name, definition]) => [`resource ${name}`, describeDefinition(definition, baseUrl)] as const,
  );
  return [...lists, ...kinds].map(([setting, value]) => ({
    setting,
    variable: null,
    value,
    source: 'file',
    from: describeOrigin('file', null),
  }));
}

function describeOrigin(source: Source, variable: string | null): string {
  return { flag: 'flag', environment: variable ?? '', file: 'configuration file', default: 'default' }[source];
}

/** Secrets, whose values are never shown. A file, a command or a token endpoint takes precedence over EXPUNGE_TOKEN. */
function secretRows(config: Config, env: NodeJS.ProcessEnv): Row[] {
  const { tokenFile, tokenCommand, tokenUrl, clientSecretFile, resultsHeaderFile, notifySecretFile, serverTokenFile } =
    config;
  const command = tokenCommand === undefined ? null : 'from command';
  const endpoint = tokenUrl === undefined ? null : 'from token endpoint';
  return [
    secretRow('token', 'EXPUNGE_TOKEN', env, tokenFile ? 'from file' : (command ?? endpoint)),
    secretRow('client secret', 'EXPUNGE_CLIENT_SECRET', env, clientSecretFile ? 'from file' : null),
    secretRow('results headers', 'EXPUNGE_RESULTS_HEADERS', env, resultsHeaderFile ? 'from file' : null),
    secretRow('notify secret', 'EXPUNGE_NOTIFY_SECRET', env, notifySecretFile ? 'from file' : null),
    secretRow('server token', 'EXPUNGE_SERVER_TOKEN', env, serverTokenFile ? 'from file' : null),
    secretRow('redis', 'REDIS_URL', env, null),
  ];
}

function secretRow(setting: string, variable: string, env: NodeJS.ProcessEnv, elsewhere: string | null): Row {
  if (elsewhere !== null) return { setting, variable, value: 'set', source: 'file', from: elsewhere };
  const isSet = Boolean(env[variable]);
  const [value, source] = isSet ? (['set', 'environment'] as const) : [null, null];
  return { setting, variable, value, source, from: isSet ? `from ${variable}` : '' };
}

/** `columns`: the width of the terminal. */
function table(rows: Row[], columns: number): string {
  const lines = rows.map(({ setting, value, from }) => [setting, value === '' ? '""' : (value ?? '-'), from] as const);
  const width = (column: 0 | 1) => Math.max(...lines.map((line) => textWidth(line[column])));
  const [first, second] = [width(0), Math.min(width(1), 50)];
  return lines
    .map(([a, b, c]) => {
      const start = `${padded(a, first)}  `;
      // A value wider than its column continues below itself.
      return textWidth(b) > second
        ? hanging(`${b} (${c})`, start, columns)
        : `${start}${padded(b, second)}  ${c}`.trimEnd();
    })
    .join('\n')
    .concat('\n');
}
