/** Removes from `dist` the declarations that no public subpath leads to: no compiler of a user reads them. */
import { existsSync, globSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'

const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { exports: object }
const IMPORTED = /(?:\bfrom|\bimport)\s*\(?\s*['"](\.[^'"]+)['"]/g

const reached = new Set<string>()
for (const file of declarationsIn(exports)) reach(join(file))

const all = globSync('dist/**/*.d.ts')
for (const file of all)
  if (!reached.has(file)) for (const each of [file, `${file}.map`]) rmSync(each, { force: true })

/** Returns the files that conditions of exports name. */
function declarationsIn(conditions: unknown): string[] {
  if (typeof conditions === 'string') return conditions.endsWith('.d.ts') ? [conditions] : []
  return typeof conditions === 'object' && conditions !== null
    ? Object.values(conditions).flatMap(declarationsIn)
    : []
}

function reach(file: string): void {
  if (reached.has(file) || !existsSync(file)) return
  reached.add(file)
  for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(IMPORTED))
    reach(join(dirname(file), path.replace(/\.[jt]s$/, '.d.ts')))
}
