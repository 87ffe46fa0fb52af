import type { Page } from './pages.ts'

/** Returns an index of the pages for readers that are programs, as https://llmstxt.org describes it. */
export function llmsText(pages: readonly Page[], urlOf: (page: Page) => string): string {
  const index = pages.map((page) => `- [${page.title}](${urlOf(page)}): ${summaryOf(page)}`)
  const about = 'A gateway to many model providers, as one command and as Express 5 middlewares.'
  return `# express-model-gateway\n\n> ${about}\n\n## Pages\n\n${index.join('\n')}\n`
}

/** Returns all pages in one text. */
export function llmsFullText(pages: readonly Page[]): string {
  const texts = pages.map(({ path, title, text }) => `# ${title}\n\nFile: ${path}\n\n${text.trim()}\n`)
  return texts.join('\n')
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
