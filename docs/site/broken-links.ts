import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/** Returns the links of a site that lead to no page of it, or to no place on that page. */
export function brokenLinks(folder: string): string[] {
  const anchors = new Map<string, ReadonlySet<string>>()
  const anchorsOf = (file: string): ReadonlySet<string> => {
    const known = anchors.get(file) ?? new Set(valuesOf(readFileSync(file, 'utf8'), 'id'))
    anchors.set(file, known)
    return known
  }
  return globSync('**/*.html', { cwd: folder }).flatMap((page) =>
    valuesOf(readFileSync(join(folder, page), 'utf8'), 'href')
      .filter((href) => !/^(?:https?|data|mailto):/.test(href))
      .filter((href) => {
        const [path = '', anchor] = href.split('#')
        const file = path === '' ? join(folder, page) : join(folder, dirname(page), decodeURI(path))
        if (!existsSync(file)) return true
        return (
          file.endsWith('.html') && Boolean(anchor) && !anchorsOf(file).has(decodeURIComponent(anchor ?? ''))
        )
      })
      .map((href) => `${relative(folder, join(folder, page))}: ${href}`),
  )
}

function valuesOf(html: string, attribute: string): string[] {
  return [...html.matchAll(new RegExp(`\\s${attribute}="([^"]*)"`, 'g'))].map(([, value = '']) =>
    value.replaceAll('&amp;', '&'),
  )
}
