import { h } from '../element.ts'
import { linkTo } from '../router.ts'
import type { ViewContent } from '../view.ts'

export function unknownView(): ViewContent {
  return {
    title: 'Nothing here',
    content: h('p', {}, 'The console has no such view. ', h('a', { href: linkTo('') }, 'Overview')),
  }
}
