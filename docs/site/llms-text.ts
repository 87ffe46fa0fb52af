import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from './pages.ts'

/** Writes `llms.txt`, an index of the pages, and `llms-full.txt`, which has all of them, for readers that are programs. */
export function writeLlmsText(folder: string, pages: readonly Page[], urlOf: (page: Page) => string): void {
  const index = pages.map((page) => `- [${page.title}](${urlOf(page)}): ${summaryOf(page)}`)
  const about = 'A gateway to many model providers, as one command and as Express 5 middlewares.'
  writeFileSync(
    join(folder, 'llms.txt'),
    `# express-model-gateway\n\n> ${about}\n\n## Pages\n\n${index.join('\n')}\n`,
  )
  const texts = pages.map(({ path, title, text }) => `# ${title}\n\nFile: ${path}\n\n${text.trim()}\n`)
  writeFileSync(join(folder, 'llms-full.txt'), texts.join('\n'))
}

/** The first sentence of a page, without marks. */
function summaryOf({ text, title }: Page): string {
  const paragraph =
    text
      .replace(/^```.*?^```$/gms, '')
      .split('\n\n')
      .find((part) => /^[A-Z`]/.test(part.trim())) ?? title
  const [sentence = ''] = /^.*?[.:](?=\s|$)/s.exec(paragraph) ?? [paragraph]
  return sentence
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/\s+/g, ' ')
    .replace(/:$/, '.')
}
