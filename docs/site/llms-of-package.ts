/** Writes the `llms.txt` of the package. Its links are paths, because whoever has the package has the pages as files. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { llmsText } from './llms-text.ts'
import { pagesOfPackage, ROOT } from './pages.ts'

writeFileSync(
  join(ROOT, 'llms.txt'),
  llmsText(pagesOfPackage(), ({ path }) => path),
)
