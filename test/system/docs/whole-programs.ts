import { type Block, blocksOf, type CurlLine, curlLinesOf } from '../../docs/pages.ts'

/** Where the programs of the pages listen, and where the demo gateway does. */
export const DOCUMENTED = 'http://127.0.0.1:3000'
export const DEMO_GATEWAY = 'http://127.0.0.1:8787'

/** A whole program, and the requests that the page says to send to it. */
export interface Program extends Block {
  readonly requests: readonly CurlLine[]
}

/** Returns the programs; the requests between a program and the next belong to the first of the two. */
export function programsOf(): Program[] {
  const programs: (Block & { requests: CurlLine[] })[] = []
  for (const block of blocksOf(['README.md', 'docs/*.md', 'lib/**/*.md'])) {
    const last = programs.at(-1)
    if (block.language === 'ts' && /^(?:const \w+ = )?app\.listen\(/m.test(block.code))
      programs.push({ ...block, requests: [] })
    else if (block.language === 'sh' && last?.page === block.page)
      last.requests.push(...curlLinesOf(block, DOCUMENTED))
  }
  return programs
}
