/** A child of an element. Strings become text nodes; no markup is parsed. */
export type Child = Node | string | number | false | null | undefined | readonly Child[]

/** Attributes by name; functions are listeners by event name. Undefined, null and false are left out. */
export type Attributes = Readonly<
  Record<string, string | number | boolean | null | undefined | ((event: Event) => unknown)>
>

const SVG = 'http://www.w3.org/2000/svg'

/**
 * Creates an HTML element.
 *
 * @example
 * h('button', { type: 'button', click: save }, 'Save')
 */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag)
  applyAttributes(element, attributes, children)
  return element
}

/** Creates an SVG element. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag)
  applyAttributes(element, attributes, children)
  return element
}

/** Replaces the children of an element. */
export function fill(element: Element, ...children: readonly Child[]): void {
  element.replaceChildren(...nodesOf(children))
}

function applyAttributes(element: Element, attributes: Attributes, children: readonly Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value)
    else if (value !== undefined && value !== null && value !== false)
      element.setAttribute(name, value === true ? '' : String(value))
  }
  element.append(...nodesOf(children))
}

function nodesOf(children: readonly Child[]): (Node | string)[] {
  return children.flatMap((child): (Node | string)[] => {
    if (child === undefined || child === null || child === false) return []
    if (child instanceof Node) return [child]
    return typeof child === 'object' ? nodesOf(child) : [String(child)]
  })
}
