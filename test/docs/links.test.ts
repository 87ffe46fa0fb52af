import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { ROOT } from './pages.ts'

const pages = globSync(['*.md', 'lib/**/*.md', 'examples/**/*.md', 'test/**/*.md'], { cwd: ROOT }).sort()

/** A page without its blocks of code, in which nothing is a link or a heading. */
function textOf(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8').replace(/^```.*?^```$/gms, '')
}

/** The names that a page's headings can be linked by. */
function anchorsOf(page: string): ReadonlySet<string> {
  const titles = [...textOf(page).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title)
  const words = titles.map((title) => title.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase())
  return new Set(words.map((title) => title.replace(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-')))
}

function brokenLinksOf(page: string): string[] {
  const targets = [...textOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
  return targets.filter((target) => {
    if (/^https?:/.test(target)) return false
    const [file = '', anchor] = target.split('#')
    const linked = file === '' ? page : join(dirname(page), file)
    if (!existsSync(join(ROOT, linked))) return true
    return anchor !== undefined && !anchorsOf(linked).has(anchor)
  })
}

describe('links between the pages', () => {
  it('are found', () => assert.ok(pages.length > 40))

  for (const page of pages) {
    it(`${page} leads to what is there`, () => assert.deepEqual(brokenLinksOf(page), []))
  }
})
