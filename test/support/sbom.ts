import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

// `npm run sbom` prints the SBOM of a release: each package of the lock file that expunge needs to run, in the form of CycloneDX.

type Component = {
  readonly 'bom-ref': string;
  readonly name: string;
  readonly properties: readonly { readonly name: string }[];
};
type Sbom = {
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
};

const root = fileURLToPath(new URL('../../', import.meta.url));

/** What npm writes about the lock file. It needs no network and no installed packages. */
function readSbom(): Sbom {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only', '--offline'];
  return JSON.parse(execFileSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 }));
}

/**
 * The SBOM without what only development needs. Not by `--omit dev`: it also drops packages that development shares with expunge,
 * such as undici (https://github.com/npm/cli/issues/7909).
 */
function withoutDevelopment(sbom: Sbom): Sbom {
  const components = sbom.components.filter((component) => !isForDevelopment(component));
  const left = new Set([sbom.metadata.component, ...components].map((component) => component['bom-ref']));
  const dependencies = sbom.dependencies
    .filter(({ ref }) => left.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((name) => left.has(name)) }));
  return { ...sbom, components, dependencies };
}

function isForDevelopment({ properties }: Component): boolean {
  return properties.some(({ name }) => name === 'cdx:npm:package:development');
}

/** The SBOM under the name of the package: npm writes that of the folder. */
function ofExpunge(sbom: Sbom): Sbom {
  return { ...sbom, metadata: { ...sbom.metadata, component: { ...sbom.metadata.component, name: 'expunge' } } };
}

console.log(JSON.stringify(ofExpunge(withoutDevelopment(readSbom())), null, 2));
