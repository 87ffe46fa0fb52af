/** Builds the documentation as a static site: `npm run docs -- [folder]`, by default into `.data/docs`. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Application, Converter, type ProjectReflection, ReflectionKind, Renderer } from 'typedoc'
import { brokenLinks } from './broken-links.ts'
import { llmsFullText, llmsText } from './llms-text.ts'
import { pagesOfPackage, ROOT } from './pages.ts'

const out = resolve(process.argv[2] ?? join(ROOT, '.data/docs'))

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly exports: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

/** The public subpath of each source. */
const subpaths = new Map(
  Object.entries(manifest.exports).flatMap(([subpath, { '@express-model-gateway/source': source }]) =>
    // A command has no exports.
    typeof source === 'string' && !source.endsWith('/bin.ts') ? [[join(ROOT, source), subpath] as const] : [],
  ),
)
const pages = new Map(pagesOfPackage().map((page) => [join(ROOT, page.path), page] as const))

const app = await Application.bootstrap({
  name: 'express-model-gateway',
  entryPoints: [...subpaths.keys()],
  tsconfig: join(ROOT, 'tsconfig.json'),
  readme: join(ROOT, 'README.md'),
  projectDocuments: [...pages.keys(), join(ROOT, 'CHANGELOG.md')],
  // `npm run typecheck` does that, with another version of TypeScript.
  skipErrorChecking: true,
  disableSources: true,
  excludeExternals: true,
  customCss: join(ROOT, 'docs/site/site.css'),
  searchInDocuments: true,
  searchInComments: true,
  includeVersion: true,
  groupOrder: ['Guides', 'Parts', 'Modules', '*'],
  navigation: { includeGroups: true },
  validation: false,
  logLevel: 'Error',
})

app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => nameAll(project))

/** Modules are called by their subpath, pages by their heading. */
function nameAll(project: ProjectReflection): void {
  for (const module of project.getReflectionsByKind(ReflectionKind.Module)) {
    const subpath = subpaths.get(project.files.getReflectionPath(module) ?? '')
    if (subpath !== undefined) module.name = join('express-model-gateway', subpath)
  }
  for (const document of project.documents ?? []) {
    const page = pages.get(project.files.getReflectionPath(document) ?? '')
    if (page === undefined) continue
    document.name = page.title
    document.frontmatter.group = page.path.startsWith('docs/') ? 'Guides' : 'Parts'
  }
}

const project = await app.convert()
if (project === undefined) throw new Error('the sources could not be read')
rmSync(out, { recursive: true, force: true })
const urls = new Map<string, string>()
app.renderer.on(Renderer.EVENT_BEGIN, () => {
  for (const document of project.documents ?? []) {
    const file = project.files.getReflectionPath(document)
    if (file !== undefined) urls.set(file, app.renderer.router?.getFullUrl(document) ?? '')
  }
})
await app.generateDocs(project, out)
const urlOf = ({ path }: { path: string }) => urls.get(join(ROOT, path)) ?? path
writeFileSync(join(out, 'llms.txt'), llmsText([...pages.values()], urlOf))
writeFileSync(join(out, 'llms-full.txt'), llmsFullText([...pages.values()]))
const broken = brokenLinks(out)
if (broken.length > 0) throw new Error(`links that lead nowhere:\n${broken.join('\n')}`)
console.log(out)
