import { h } from '../element.ts'
import { linkTo } from '../router.ts'
import type { ViewContent } from '../view.ts'

export function unknownView(): ViewContent {
  return {
    title: 'Page not found',
    content: h('p', {}, 'The console has no such page. ', h('a', { href: linkTo('') }, 'Overview')),
  }
}
