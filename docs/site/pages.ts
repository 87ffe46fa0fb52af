import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** A page of the documentation. */
export interface Page {
  /** From the root of the repository. */
  readonly path: string
  readonly title: string
  /** The page without its title. */
  readonly text: string
}

/** The pages that the package holds: first those of tasks, then those of the parts. */
export function pagesOfPackage(): Page[] {
  const paths = ['docs/*.md', 'lib/**/*.md'].flatMap((pattern) => globSync(pattern, { cwd: ROOT }).sort())
  return paths.map((path) => {
    const [, title = path, text = ''] =
      /^# ([^\n]+)\n+(.*)$/s.exec(readFileSync(join(ROOT, path), 'utf8')) ?? []
    return { path, title, text }
  })
}
